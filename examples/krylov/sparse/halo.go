package sparse

import (
	"fmt"
	"slices"
	"sort"
)

// A Local is one rank's part of a square matrix whose rows are divided among
// ranks in contiguous blocks, vectors likewise. The rank owns some rows, and
// the elements of x and y with the same indices. The elements of x that its
// rows need and other ranks own are its ghosts.
//
// Its columns are split: the interior part has the owned ones, renumbered from
// 0 as the rows are; the boundary part has the ghosts'. So the product with
// the interior needs no communication, and hides it.
type Local struct {
	Rank       int
	First      int   // row 0 here is row First of the whole matrix
	Rows       int   // how many it owns
	Ghosts     []int // the column in the whole matrix of each ghost, increasing, and so grouped by owner
	Neighbours []Neighbour

	interior     *CSR
	boundary     *CSR  // only the rows that need ghosts
	boundaryRows []int // which these are
}

// A Neighbour is a rank to exchange elements of x with before a product. If the
// pattern of the matrix is not symmetric, there may be some to send and none to
// receive, or the other way round.
type Neighbour struct {
	Rank           int
	Send           []int // which owned elements to send, counted from First, increasing
	RecvLo, RecvHi int   // the elements received are ghosts RecvLo to RecvHi-1, in the order sent
}

// Localize returns the part of rank of the square matrix m, divided at offsets
// as [Partition] does it. It is an error if m is not square, or offsets or rank
// do not fit it.
//
// It costs O(k·log k) for the k entries in the rank's rows or columns, and a
// binary search in each other row for whether it has any in these columns.
func Localize(m *CSR, offsets []int, rank int) (*Local, error) {
	if m.Rows != m.Cols {
		return nil, fmt.Errorf("sparse: Localize of a %d x %d matrix, expected a square one", m.Rows, m.Cols)
	}
	ranks := len(offsets) - 1
	if ranks < 1 || offsets[0] != 0 || offsets[ranks] != m.Rows || !slices.IsSorted(offsets) {
		return nil, fmt.Errorf("sparse: Localize with offsets %v, expected them to rise from 0 to %d", offsets, m.Rows)
	}
	if rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("sparse: Localize for rank %d, expected 0 to %d", rank, ranks-1)
	}
	lo, hi := offsets[rank], offsets[rank+1]
	l := &Local{Rank: rank, First: lo, Rows: hi - lo}
	l.Ghosts = ghosts(m, lo, hi)
	l.split(m)
	for q := range ranks {
		if q == rank {
			continue
		}
		nb := Neighbour{
			Rank:   q,
			Send:   needs(m, offsets[q], offsets[q+1], lo, hi),
			RecvLo: sort.SearchInts(l.Ghosts, offsets[q]),
			RecvHi: sort.SearchInts(l.Ghosts, offsets[q+1]),
		}
		if len(nb.Send) > 0 || nb.RecvLo < nb.RecvHi {
			l.Neighbours = append(l.Neighbours, nb)
		}
	}
	return l, nil
}

// ghosts returns the columns outside lo to hi-1 that rows lo to hi-1 have
// entries in, increasing.
func ghosts(m *CSR, lo, hi int) []int {
	var cols []int
	for i := lo; i < hi; i++ {
		row, _ := m.Row(i)
		a, b := between(row, lo, hi)
		for _, j := range row[:a] {
			cols = append(cols, int(j))
		}
		for _, j := range row[b:] {
			cols = append(cols, int(j))
		}
	}
	slices.Sort(cols)
	return slices.Compact(cols)
}

// needs returns the columns lo to hi-1 that rows first to end-1 have entries
// in, counted from lo, increasing.
func needs(m *CSR, first, end, lo, hi int) []int {
	var cols []int
	for i := first; i < end; i++ {
		row, _ := m.Row(i)
		a, b := between(row, lo, hi)
		for _, j := range row[a:b] {
			cols = append(cols, int(j)-lo)
		}
	}
	slices.Sort(cols)
	return slices.Compact(cols)
}

// between returns where the columns lo to hi-1 begin and end in a row.
func between(row []int32, lo, hi int) (a, b int) {
	if n := len(row); n == 0 || int(row[n-1]) < lo {
		return n, n
	}
	a, _ = slices.BinarySearch(row, int32(lo))
	b, _ = slices.BinarySearch(row[a:], int32(hi))
	return a, a + b
}

// split sets the interior and boundary parts of the rank's rows.
func (l *Local) split(m *CSR) {
	lo, hi := l.First, l.First+l.Rows
	in := &CSR{Rows: l.Rows, Cols: l.Rows, RowPtr: make([]int, 1, l.Rows+1)}
	out := &CSR{Cols: len(l.Ghosts), RowPtr: make([]int, 1)}
	for i := lo; i < hi; i++ {
		cols, vals := m.Row(i)
		a, b := between(cols, lo, hi)
		for k, j := range cols {
			if a <= k && k < b {
				in.ColIdx = append(in.ColIdx, j-int32(lo))
				in.Val = append(in.Val, vals[k])
			} else {
				out.ColIdx = append(out.ColIdx, int32(sort.SearchInts(l.Ghosts, int(j))))
				out.Val = append(out.Val, vals[k])
			}
		}
		in.RowPtr = append(in.RowPtr, len(in.Val))
		if b-a < len(cols) {
			out.RowPtr = append(out.RowPtr, len(out.Val))
			l.boundaryRows = append(l.boundaryRows, i-lo)
		}
	}
	out.Rows = len(l.boundaryRows)
	l.interior, l.boundary = in, out
}

// MulInterior computes y = A·x as far as the owned elements x go. y and x both
// have l.Rows elements and do not overlap.
func (l *Local) MulInterior(y, x []float64) { l.interior.MulVec(y, x) }

// MulBoundary adds to y what the ghosts contribute, and so completes y after
// [Local.MulInterior]. There are as many elements in ghosts as in l.Ghosts.
func (l *Local) MulBoundary(y, ghosts []float64) {
	if len(y) != l.Rows || len(ghosts) != len(l.Ghosts) {
		panic(fmt.Sprintf("sparse: MulBoundary with %d rows and %d ghosts: y has %d elements, ghosts has %d",
			l.Rows, len(l.Ghosts), len(y), len(ghosts)))
	}
	for k, i := range l.boundaryRows {
		cols, vals := l.boundary.Row(k)
		y[i] += dot(cols, vals, ghosts)
	}
}

// DiagonalBlock returns the block of the matrix in the rank's rows and columns,
// which block Jacobi preconditioners need. It is not a copy: leave it as it is.
func (l *Local) DiagonalBlock() *CSR { return l.interior }

// Pack copies the elements of x to send to nb into buf, which has room for
// len(nb.Send), in the order in which nb's ghosts stand.
func (nb *Neighbour) Pack(buf, x []float64) {
	for k, i := range nb.Send {
		buf[k] = x[i]
	}
}
