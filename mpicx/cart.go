package mpicx

import (
	"fmt"
	"math"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// A Cart is a communicator whose ranks form a grid of any number of dimensions, in row-major
// order: along the last coordinate ranks are consecutive. It has the methods of a Comm, and
// functions such as [Send] take its field Comm. Communicators derived from that have no grid, nor
// do those that Shrink and Replace make: after a repair call CartCreate again, on the repaired
// communicator.
//
// Its methods that return no error throw an *MPIError if an argument is wrong.
type Cart struct {
	*Comm
	dims      []int
	periods   []bool
	neighbors *neighborhood
}

// CartCreate makes a grid of the first ranks of c, in their order (MPI_Cart_create). Dims are
// the numbers of ranks in each dimension. Periods say in which dimensions the last rank is a
// neighbour of the first; nil: in none. Ranks beyond the product of dims get a nil Cart. It is
// collective over c. If ranks have different arguments, all get an error.
func CartCreate(c *Comm, dims []int, periods []bool) *future.Future[*Cart] {
	const op = "CartCreate"
	if c == nil {
		return nowhere[*Cart](op)
	}
	dims, periods = slices.Clone(dims), slices.Clone(periods)
	if periods == nil {
		periods = make([]bool, len(dims))
	}
	k := check{op: op}
	k.that(len(periods) == len(dims), ClassOther, "%d periods, expected one for each of the %d dimensions", len(periods), len(dims))
	size := 1
	for i, d := range dims {
		k.that(d > 0, ClassOther, "extent %d of dimension %d, expected 1 or more", d, i)
		k.that(d <= c.size/size, ClassOther, "extents %v, expected at most the %d ranks of %s", dims, c.size, c.name)
		if k.err != nil {
			break
		}
		size *= d
	}
	mine := choice{color: Undefined, about: digest(op, dims, periods)}
	if c.rank < size {
		mine.color, mine.size = 0, uint64(size)
	}
	return splitAs(c.of(), signature.CartCreate, errchan.CartCreate, mine, k.err, func(d *comm) *Cart { return newCart(d, dims, periods) })
}

// Sub makes grids of fewer dimensions (MPI_Cart_sub): each has the ranks that differ only in
// the coordinates of the dimensions that remain. In two dimensions, Sub(false, true) makes the
// rows. It is collective over the grid.
func (g *Cart) Sub(remain ...bool) *future.Future[*Cart] {
	const op = "CartSub"
	if g == nil {
		return nowhere[*Cart](op)
	}
	k := check{op: op}
	k.that(len(remain) == len(g.dims), ClassOther, "%d values, expected one for each of the %d dimensions", len(remain), len(g.dims))
	color, key := 0, 0
	var dims []int
	var periods []bool
	for i, x := range g.Coords(g.rank) {
		if k.err == nil && remain[i] {
			key = key*g.dims[i] + x
			dims, periods = append(dims, g.dims[i]), append(periods, g.periods[i])
		} else {
			color = color*g.dims[i] + x
		}
	}
	mine := choice{color, key, digest(op, remain), uint64(product(dims))}
	return splitAs(g.Comm.of(), signature.CartSub, errchan.CartSub, mine, k.err, func(d *comm) *Cart { return newCart(d, dims, periods) })
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Release is [Comm.Release]. Ranks that are not in the grid may call it, too.
func (g *Cart) Release() {
	v := recover()
	if g != nil {
		defer g.Comm.Release() // it sees the panic
	}
	if v != nil {
		panic(v)
	}
}

func newCart(c *comm, dims []int, periods []bool) *Cart {
	g := &Cart{Comm: c.handle(), dims: dims, periods: periods, neighbors: &neighborhood{comm: c}}
	for i := range dims {
		before, after := g.Shift(i, 1)
		g.neighbors.to = append(g.neighbors.to, before, after)
		// If both neighbours are the same rank, its message to the rank after it is this rank's
		// message from the rank before.
		g.neighbors.order = append(g.neighbors.order, 2*i+1, 2*i)
	}
	g.neighbors.from = g.neighbors.to
	return g
}

func (g *Cart) neighborhood() *neighborhood {
	if g == nil {
		return nil
	}
	return g.neighbors
}

// Dims are the extents of the grid (MPI_Cart_get).
func (g *Cart) Dims() []int { return slices.Clone(g.dims) }

// Periods say in which dimensions the last rank is a neighbour of the first (MPI_Cart_get).
func (g *Cart) Periods() []bool { return slices.Clone(g.periods) }

// Coords returns the coordinates of a rank (MPI_Cart_coords).
func (g *Cart) Coords(rank int) []int {
	if rank < 0 || rank >= g.size {
		throw(mpiErrorf("Coords", ClassRank, "rank %d of %s, expected 0 to %d", rank, g.name, g.size-1))
	}
	coords := make([]int, len(g.dims))
	for i := len(coords) - 1; i >= 0; i-- {
		coords[i] = rank % g.dims[i]
		rank /= g.dims[i]
	}
	return coords
}

// RankOf returns the rank at some coordinates (MPI_Cart_rank), and ProcNull beyond a border. In
// periodic dimensions coordinates are taken modulo the extent.
func (g *Cart) RankOf(coords ...int) int {
	if len(coords) != len(g.dims) {
		throw(mpiErrorf("RankOf", ClassOther, "%d coordinates, expected one for each of the %d dimensions", len(coords), len(g.dims)))
	}
	rank := 0
	for i, x := range coords {
		n := g.dims[i]
		if g.periods[i] {
			x = (x%n + n) % n
		}
		if x < 0 || x >= n {
			return ProcNull
		}
		rank = rank*n + x
	}
	return rank
}

// Shift returns the ranks at a distance before and after this one in a dimension
// (MPI_Cart_shift): the rank to receive from, and the rank to send to, when all send in that
// direction.
func (g *Cart) Shift(dim, distance int) (source, dest int) {
	if dim < 0 || dim >= len(g.dims) {
		throw(mpiErrorf("Shift", ClassOther, "dimension %d, expected 0 to %d", dim, len(g.dims)-1))
	}
	at := func(distance int) int {
		coords := g.Coords(g.rank)
		if !g.periods[dim] && (distance >= g.dims[dim] || distance <= -g.dims[dim]) {
			return ProcNull
		}
		coords[dim] += distance % g.dims[dim] // the sum may be greater than an int
		return g.RankOf(coords...)
	}
	return at(-distance), at(distance)
}

// Block divides n cells among the ranks along a dimension and returns this rank's: the first
// cell, and how many there are. The counts of two ranks differ by at most one.
func (g *Cart) Block(dim, n int) (first, count int) {
	if dim < 0 || dim >= len(g.dims) || n < 0 {
		throw(mpiErrorf("Block", ClassOther, "%d cells along dimension %d, expected 0 or more along 0 to %d", n, dim, len(g.dims)-1))
	}
	x, parts := g.Coords(g.rank)[dim], g.dims[dim]
	first = x*(n/parts) + min(x, n%parts)
	count = n / parts
	if x < n%parts {
		count++
	}
	return first, count
}

// String returns the name of the communicator and its extents.
func (g *Cart) String() string {
	if g == nil {
		return nilComm
	}
	return fmt.Sprintf("%s, grid of %v", g.name, g.dims)
}

// DimsCreate divides n ranks into a grid (MPI_Dims_create). Dims are its extents, 0 for each
// that DimsCreate is to choose: DimsCreate(12, 0, 0) is 4, 3. The chosen extents do not
// increase, and the greatest and the least differ as little as possible; of several such
// choices it takes the one whose greatest extent is least, and so on. If the given extents do
// not divide n, or n exceeds the largest int of MPI (2^31 - 1), the error is an *MPIError.
func DimsCreate(n int, dims ...int) ([]int, error) {
	const op = "DimsCreate"
	k := check{op: op}
	// For n of 64 bits closest could take hours.
	k.that(n > 0 && n <= math.MaxInt32, ClassOther, "%d ranks, expected 1 to %d", n, math.MaxInt32)
	rest, free := n, 0
	for i, d := range dims {
		k.that(d >= 0, ClassOther, "extent %d of dimension %d, expected 1 or more, or 0 if it is to be chosen", d, i)
		switch {
		case k.err != nil:
		case d == 0:
			free++
		default:
			k.that(rest%d == 0, ClassOther, "extents %v, expected extents whose product divides the %d ranks", dims, n)
			rest /= d
		}
	}
	k.that(free > 0 || rest == 1, ClassOther, "extents %v, expected extents whose product is the %d ranks, or 0 for each that is to be chosen", dims, n)
	if k.err != nil {
		return nil, k.err
	}
	all := slices.Clone(dims)
	found := closest(rest, free)
	for i, d := range all {
		if d == 0 {
			all[i], found = found[0], found[1:]
		}
	}
	return all, nil
}

// closest returns k factors of n, descending, that are as close to each other as possible.
func closest(n, k int) (best []int) {
	var divisors []int // descending
	for d := 1; d <= n/d; d++ {
		if n%d == 0 {
			divisors = append(divisors, d, n/d)
		}
	}
	slices.Sort(divisors)
	divisors = slices.Compact(divisors)
	spread := math.MaxInt
	factors := make([]int, 0, k)
	// Each factor, from the last, is at least the one before it.
	var search func(rest, from int)
	search = func(rest, from int) {
		left := k - len(factors)
		if left == 0 {
			if s := factors[k-1] - factors[0]; rest == 1 && (s < spread || s == spread && slices.Compare(reversed(factors), best) < 0) {
				best, spread = reversed(factors), s
			}
			return
		}
		for i, d := range divisors[from:] {
			if d > rest || len(factors) > 0 && d-factors[0] > spread {
				break
			}
			if rest%d == 0 && (left > 1 || d == rest) && atMost(d, left, rest) {
				factors = append(factors, d)
				search(rest/d, from+i)
				factors = factors[:len(factors)-1]
			}
		}
	}
	if k > 0 {
		search(n, 0)
	}
	return best
}

// atMost says whether d to the power of k is at most n.
func atMost(d, k, n int) bool {
	for range k {
		n /= d
	}
	return n > 0
}

func reversed(s []int) []int {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}
