package sparse

import (
	"fmt"
	"math"
	"slices"
)

// An ILU is an incomplete factorization A ≈ L·U without fill-in: L has a unit diagonal, and L
// and U together have the pattern of A. If A is symmetric, L·U is symmetric too: it is then the
// incomplete Cholesky factorization with the diagonal stored separately, and a preconditioner
// for the conjugate gradient method.
type ILU struct {
	lu   *CSR      // L below the diagonal; U on it and above
	diag []int     // positions of the diagonal in lu.Val
	inv  []float64 // 1/U[i][i]
}

// A PivotError says that a matrix has no incomplete factorization.
type PivotError struct {
	Row   int     // counted from 0
	Pivot float64 // 0 if the row has no diagonal entry
}

func (e *PivotError) Error() string {
	return fmt.Sprintf("sparse: ILU(0) of row %d: the pivot is %v, expected a finite number that is not negligible in its row", e.Row, e.Pivot)
}

// ILU0 factorizes the square matrix a without changing it (Saad, Iterative Methods for Sparse
// Linear Systems, 2nd ed., algorithm 10.4). The error is a [*PivotError] if a pivot is missing,
// if it or its inverse is not finite, or if it is at most 2⁻⁵² of the largest entry of its row
// in a: rounding may leave as much of a zero.
func ILU0(a *CSR) (*ILU, error) {
	if a.Rows != a.Cols {
		return nil, fmt.Errorf("sparse: ILU(0) of a %d x %d matrix, expected a square one", a.Rows, a.Cols)
	}
	n := a.Rows
	f := &ILU{
		lu:   &CSR{Rows: n, Cols: n, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: slices.Clone(a.Val)},
		diag: make([]int, n),
		inv:  make([]float64, n),
	}
	cols, vals := f.lu.ColIdx, f.lu.Val
	at := make([]int, n) // at[j] is 1 + the position of column j in the current row; 0: none
	for i := range n {
		lo, hi := f.lu.RowPtr[i], f.lu.RowPtr[i+1]
		d, ok := slices.BinarySearch(cols[lo:hi], int32(i))
		if !ok {
			return nil, &PivotError{Row: i}
		}
		f.diag[i] = lo + d
		largest := 0.0
		for k := lo; k < hi; k++ {
			at[cols[k]] = k + 1
			largest = max(largest, math.Abs(vals[k]))
		}
		for k := lo; k < f.diag[i]; k++ {
			j := cols[k]
			vals[k] *= f.inv[j]
			for p := f.diag[j] + 1; p < f.lu.RowPtr[j+1]; p++ {
				if q := at[cols[p]]; q > 0 {
					vals[q-1] -= vals[k] * vals[p]
				}
			}
		}
		for _, j := range cols[lo:hi] {
			at[j] = 0
		}
		pivot := vals[f.diag[i]]
		f.inv[i] = 1 / pivot
		if !(math.Abs(pivot) > 0x1p-52*largest) || math.IsInf(pivot, 0) || math.IsInf(f.inv[i], 0) {
			return nil, &PivotError{Row: i, Pivot: pivot}
		}
	}
	return f, nil
}

// Solve solves L·U·z = r. All have as many elements as the matrix has rows; z
// and r may be the same.
func (f *ILU) Solve(z, r []float64) {
	n := len(f.diag)
	if len(z) != n || len(r) != n {
		panic(fmt.Sprintf("sparse: ILU.Solve of %d rows: z has %d elements, r has %d", n, len(z), len(r)))
	}
	cols, vals, ptr := f.lu.ColIdx, f.lu.Val[:len(f.lu.ColIdx)], f.lu.RowPtr
	// Entries computed last are used last, because the processor waits for them.
	for i, d := range f.diag {
		sum := r[i]
		for k := ptr[i]; k < d; k++ {
			sum -= vals[k] * z[cols[k]]
		}
		z[i] = sum
	}
	for i := n - 1; i >= 0; i-- {
		sum := z[i]
		for k := ptr[i+1] - 1; k > f.diag[i]; k-- {
			sum -= vals[k] * z[cols[k]]
		}
		z[i] = f.inv[i] * sum
	}
}
