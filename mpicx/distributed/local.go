package distributed

import (
	"slices"

	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// A local is one rank's rows of a matrix. The elements of x that they need and other ranks own are
// its ghosts. Its columns are split. The interior part has the owned columns, renumbered from 0
// like the rows; the boundary part has the columns of ghosts. The product with the interior part
// needs no communication, and overlaps with it.
type local struct {
	first  int     // row 0 here is row first of the whole matrix
	ghosts []int32 // the column in the whole matrix of each ghost, increasing, and so grouped by owner

	interior     *sparse.CSR
	boundary     *sparse.CSR // only the rows that need ghosts
	boundaryRows []int32     // the numbers of these rows
}

// localize splits the rows from first on. It is linear in the number of entries, except for sorting
// the ghosts.
func localize(rows *sparse.CSR, first int) *local {
	l := &local{first: first}
	for i := range rows.Rows {
		cols, _ := rows.Row(i)
		a, b := l.owned(cols, rows.Rows)
		l.ghosts = append(append(l.ghosts, cols[:a]...), cols[b:]...)
	}
	slices.Sort(l.ghosts)
	l.ghosts = slices.Clip(slices.Compact(l.ghosts))
	l.split(rows)
	return l
}

// owned returns where the owned columns begin and end in a row.
func (l *local) owned(cols []int32, rows int) (a, b int) {
	a, _ = slices.BinarySearch(cols, int32(l.first))
	b, _ = slices.BinarySearch(cols[a:], int32(l.first+rows))
	return a, a + b
}

func (l *local) split(rows *sparse.CSR) {
	in := &sparse.CSR{Rows: rows.Rows, Cols: rows.Rows, RowPtr: make([]int, 1, rows.Rows+1)}
	in.ColIdx, in.Val = make([]int32, 0, rows.NNZ()), make([]float64, 0, rows.NNZ())
	out := &sparse.CSR{Cols: len(l.ghosts), RowPtr: make([]int, 1)}
	for i := range rows.Rows {
		cols, vals := rows.Row(i)
		a, b := l.owned(cols, rows.Rows)
		for k, j := range cols {
			if a <= k && k < b {
				in.ColIdx = append(in.ColIdx, j-int32(l.first))
				in.Val = append(in.Val, vals[k])
			} else {
				g, _ := slices.BinarySearch(l.ghosts, j)
				out.ColIdx = append(out.ColIdx, int32(g))
				out.Val = append(out.Val, vals[k])
			}
		}
		in.RowPtr = append(in.RowPtr, len(in.Val))
		if b-a < len(cols) {
			out.RowPtr = append(out.RowPtr, len(out.Val))
			l.boundaryRows = append(l.boundaryRows, int32(i))
		}
	}
	out.Rows = len(l.boundaryRows)
	l.interior, l.boundary = in, out
}

// addBoundary adds the contribution of the ghosts to y.
func (l *local) addBoundary(y, ghosts []float64) {
	for k, i := range l.boundaryRows {
		cols, vals := l.boundary.Row(k)
		y[i] += addRow(0, cols, vals, ghosts)
	}
}

// mulOrdered computes the rows of y that need ghosts: first the columns of ghosts before the owned
// ones, then these, and the others.
func (l *local) mulOrdered(y, x, ghosts []float64) {
	before, _ := slices.BinarySearch(l.ghosts, int32(l.first))
	for k, i := range l.boundaryRows {
		cols, vals := l.boundary.Row(k)
		owned, ownedVals := l.interior.Row(int(i))
		n, _ := slices.BinarySearch(cols, int32(before))
		sum := addRow(0, cols[:n], vals[:n], ghosts)
		sum = addRow(sum, owned, ownedVals, x)
		y[i] = addRow(sum, cols[n:], vals[n:], ghosts)
	}
}

// addRow adds the product of a row and x to sum, entry by entry as MulVec does.
func addRow(sum float64, cols []int32, vals, x []float64) float64 {
	for n, j := range cols {
		sum += vals[n] * x[j]
	}
	return sum
}

// entries returns the entries of all rows, in the columns of the whole matrix.
func (l *local) entries() []sparse.Triplet {
	all := make([]sparse.Triplet, 0, l.interior.NNZ()+l.boundary.NNZ())
	for i := range l.interior.Rows {
		cols, vals := l.interior.Row(i)
		for k, j := range cols {
			all = append(all, sparse.Triplet{Row: int32(i), Col: int32(l.first) + j, Val: vals[k]})
		}
	}
	for n, i := range l.boundaryRows {
		cols, vals := l.boundary.Row(n)
		for k, j := range cols {
			all = append(all, sparse.Triplet{Row: i, Col: l.ghosts[j], Val: vals[k]})
		}
	}
	return all
}
