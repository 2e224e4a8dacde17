package sparse

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A CSR is a matrix in compressed sparse rows. Positions RowPtr[i] to RowPtr[i+1]-1 of ColIdx
// and Val have the entries of row i, in strictly increasing order of columns. Indices count
// from 0. Entries may be zero.
//
// The functions of this package return such matrices and rely on that order.
type CSR struct {
	Rows, Cols int
	RowPtr     []int // Rows+1 of them; RowPtr[0] is 0
	ColIdx     []int32
	Val        []float64
}

// A Triplet is one entry of a matrix. Its indices count from 0.
type Triplet struct {
	Row, Col int32
	Val      float64
}

// NewCSR returns the matrix with these entries, which may be in any order. Entries with the same
// indices are added up in the order given. It is an error if an index is outside the matrix.
func NewCSR(rows, cols int, entries []Triplet) (*CSR, error) {
	if rows < 0 || rows > math.MaxInt32 || cols < 0 || cols > math.MaxInt32 {
		return nil, fmt.Errorf("sparse: a matrix of %d x %d, expected 0 to %d rows and columns", rows, cols, math.MaxInt32)
	}
	for k, t := range entries {
		if t.Row < 0 || int(t.Row) >= rows || t.Col < 0 || int(t.Col) >= cols {
			return nil, fmt.Errorf("sparse: entry %d is at (%d, %d), expected indices from 0 in a matrix of %d x %d",
				k, t.Row, t.Col, rows, cols)
		}
	}
	m := &CSR{
		Rows:   rows,
		Cols:   cols,
		RowPtr: make([]int, rows+1),
		ColIdx: make([]int32, len(entries)),
		Val:    make([]float64, len(entries)),
	}
	m.bucket(entries)
	m.sortRows()
	m.addUp()
	return m, nil
}

// bucket puts the entries into their rows, in the order given. RowPtr must be all zero before.
func (m *CSR) bucket(entries []Triplet) {
	for _, t := range entries {
		m.RowPtr[t.Row]++
	}
	end := 0
	for i, n := range m.RowPtr {
		m.RowPtr[i] = end // where row i begins, and its next entry goes
		end += n
	}
	for _, t := range entries {
		k := m.RowPtr[t.Row]
		m.RowPtr[t.Row]++
		m.ColIdx[k], m.Val[k] = t.Col, t.Val
	}
	copy(m.RowPtr[1:], m.RowPtr) // row i now ends where row i+1 began
	m.RowPtr[0] = 0
}

// sortRows sorts each row by column. Entries of the same column keep their order.
func (m *CSR) sortRows() {
	var row []Triplet
	for i := range m.Rows {
		cols, vals := m.Row(i)
		if slices.IsSorted(cols) {
			continue
		}
		row = row[:0]
		for k, j := range cols {
			row = append(row, Triplet{Col: j, Val: vals[k]})
		}
		slices.SortStableFunc(row, func(a, b Triplet) int { return cmp.Compare(a.Col, b.Col) })
		for k, t := range row {
			cols[k], vals[k] = t.Col, t.Val
		}
	}
}

// addUp adds up entries with the same indices in sorted rows, and closes the gaps.
func (m *CSR) addUp() {
	lo, end := 0, 0
	for i := range m.Rows {
		hi := m.RowPtr[i+1]
		for k := lo; k < hi; k++ {
			if k > lo && m.ColIdx[k] == m.ColIdx[end-1] {
				m.Val[end-1] += m.Val[k]
				continue
			}
			m.ColIdx[end], m.Val[end] = m.ColIdx[k], m.Val[k]
			end++
		}
		lo, m.RowPtr[i+1] = hi, end
	}
	m.ColIdx, m.Val = m.ColIdx[:end], m.Val[:end]
}

// NNZ returns the number of entries.
func (m *CSR) NNZ() int { return len(m.Val) }

// Row returns the columns and values of row i. They share the matrix's memory.
func (m *CSR) Row(i int) ([]int32, []float64) {
	lo, hi := m.RowPtr[i], m.RowPtr[i+1]
	return m.ColIdx[lo:hi:hi], m.Val[lo:hi:hi]
}

// Slice returns rows lo to hi-1 as a matrix with the same number of columns. They share m's memory.
func (m *CSR) Slice(lo, hi int) *CSR {
	begin, end := m.RowPtr[lo], m.RowPtr[hi]
	s := &CSR{Rows: hi - lo, Cols: m.Cols, RowPtr: make([]int, hi-lo+1), ColIdx: m.ColIdx[begin:end:end], Val: m.Val[begin:end:end]}
	for i := range s.RowPtr {
		s.RowPtr[i] = m.RowPtr[lo+i] - begin
	}
	return s
}

// At returns the value at row i and column j, or 0 if there is no entry.
func (m *CSR) At(i, j int) float64 {
	cols, vals := m.Row(i)
	if k, ok := slices.BinarySearch(cols, int32(j)); ok {
		return vals[k]
	}
	return 0
}

// Diagonal returns the diagonal, which has min(Rows, Cols) elements. An element is 0 if it has
// no entry.
func (m *CSR) Diagonal() []float64 {
	d := make([]float64, min(m.Rows, m.Cols))
	for i := range d {
		d[i] = m.At(i, i)
	}
	return d
}

// MulVec computes y = A·x. It panics unless y has as many elements as the
// matrix has rows, and x as many as it has columns. y and x must not overlap.
func (m *CSR) MulVec(y, x []float64) {
	if len(y) != m.Rows || len(x) != m.Cols {
		panic(fmt.Sprintf("sparse: MulVec of a %d x %d matrix: x has %d elements, y has %d", m.Rows, m.Cols, len(x), len(y)))
	}
	cols, vals := m.ColIdx, m.Val[:len(m.ColIdx)]
	k := 0
	for i, end := range m.RowPtr[1:] {
		sum := 0.0
		for ; k < end; k++ {
			sum += vals[k] * x[cols[k]]
		}
		y[i] = sum
	}
}
