package mpicx

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Halo keeps the ghost cells of a block up to date. Each rank of a grid has a block of cells
// with layers of ghost cells around it, which are copies of the cells of its neighbours.
//
// A block is a slice of all cells, ghost cells included, in row-major order. Index says where a
// cell is.
type Halo[T any] struct {
	grid   *Cart
	width  int
	extent []int // of a block with its ghost cells
	stride []int
	steps  [][]*side[T] // steps one after the other; the sides of a step are exchanged at once
	busy   atomic.Bool  // a Start is under way and owns the fields below

	block    []T
	exchange collective.Exchange
	promise  *future.Promise[struct{}]
}

// NewHalo makes the Halo of blocks with the given number of cells in each dimension, and width
// layers of ghost cells on each side. Blocks may differ in size between ranks: the number of
// cells in a dimension depends on the rank's coordinate there, as in what Cart.Block returns.
// With corners, ghost cells that lie beside the block in several dimensions are updated too, as
// a 9-point stencil needs it; that takes one step for each dimension instead of one for all. T
// is a type without pointers.
//
// It is collective over the grid. The future's error is an *MPIError if a neighbour's block
// does not fit, or its arguments are bad.
func NewHalo[T any](g *Cart, cells []int, width int, corners bool) *future.Future[*Halo[T]] {
	const op = "NewHalo"
	if g == nil {
		return nowhere[*Halo[T]](op)
	}
	cells = slices.Clone(cells)
	k := checkOf[T](op)
	k.that(width > 0, ClassOther, "width %d, expected 1 or more", width)
	k.that(len(g.dims) > 0, ClassOther, "%s, expected a grid of 1 or more dimensions", g)
	k.that(len(cells) == len(g.dims), ClassOther, "blocks of %v cells, expected extents in each of the %d dimensions", cells, len(g.dims))
	bytes := float64(element.Size[T]())
	for i, n := range cells {
		k.that(n >= width, ClassOther, "%d cells in dimension %d, expected the %d layers of ghost cells or more", n, i, width)
		bytes *= float64(n) + 2*float64(width)
	}
	k.that(bytes < math.MaxInt, ClassOther, "blocks of %v cells, expected ones that fit into memory", cells)
	mine := append([]int{len(cells), width, element.Size[T](), truth(corners)}, cells...)
	n := g.neighbors
	theirs := make([]int, len(n.from)*len(mine))
	a := &collective.Neighbors{To: n.to, From: n.from, Order: n.order, Send: copies(mine, len(n.to)), Recv: element.EqualParts(theirs, len(n.from))}
	return runValue(g.Comm.of(), call{Kind: signature.NewHalo}, k.err, a, func() (*Halo[T], error) {
		for i, r := range n.from {
			their := theirs[i*len(mine):][:len(mine)]
			if r != ProcNull && !haloFits(mine, their, i/2) {
				return nil, mpiErrorf(op, ClassOther, "blocks of %v cells with %d layers of ghost cells, corners %d, elements of %d bytes, at rank %d, "+
					"expected %v cells but for dimension %d, %d layers, corners %d, %d bytes", their[4:], their[1], their[3], their[2], r, mine[4:], i/2, mine[1], mine[3], mine[2])
			}
		}
		return newHalo[T](g, cells, width, corners), nil
	})
}

// haloFits says whether two blocks, as NewHalo sends them, are the same except for the cells in
// dimension dim.
func haloFits(a, b []int, dim int) bool {
	b = slices.Clone(b)
	b[4+dim] = a[4+dim]
	return slices.Equal(a, b)
}

func newHalo[T any](g *Cart, cells []int, width int, corners bool) *Halo[T] {
	h := &Halo[T]{grid: g, width: width, stride: make([]int, len(cells))}
	inner := make([]span, len(cells))
	for i, n := range cells {
		h.extent = append(h.extent, n+2*width)
		inner[i] = span{width, width + n}
	}
	for i, size := len(cells)-1, 1; i >= 0; i-- {
		h.stride[i], size = size, size*h.extent[i]
	}
	if !corners {
		h.steps = make([][]*side[T], 1)
	}
	// From the last dimension, so that with corners the layers of the first can be contiguous.
	for dim := len(cells) - 1; dim >= 0; dim-- {
		sides := h.sides(inner, dim)
		if !corners {
			h.steps[0] = append(h.steps[0], sides...)
			continue
		}
		h.steps = append(h.steps, sides)
		if sides[0].peer != ProcNull { // cells from there are sent to neighbours in other dimensions
			inner[dim].from = 0
		}
		if sides[1].peer != ProcNull {
			inner[dim].to = h.extent[dim]
		}
	}
	return h
}

// A span is the indices from from up to, but not including, to.
type span struct{ from, to int }

// A side is the exchange with one neighbour: the rank sends a layer of its cells, and receives a
// layer of ghost cells.
type side[T any] struct {
	peer          int
	cells, ghosts layer[T]
}

// sides returns the sides before and after the cells in a dimension.
func (h *Halo[T]) sides(inner []span, dim int) []*side[T] {
	first, last := inner[dim].from, inner[dim].to
	along := func(from int) layer[T] {
		box := slices.Clone(inner)
		box[dim] = span{from, from + h.width}
		return h.layer(box)
	}
	before, after := h.grid.Shift(dim, 1)
	return []*side[T]{
		{before, along(first), along(first - h.width)},
		{after, along(last - h.width), along(last)},
	}
}

// A layer is a set of elements of a block: runs of the same length, and where they begin.
type layer[T any] struct {
	begin  []int
	length int
	buffer []T // for all runs; nil: there is one run, which needs no buffer
}

// layer returns the elements of a box.
func (h *Halo[T]) layer(box []span) (l layer[T]) {
	last := len(box) - 1
	l.length = box[last].to - box[last].from
	var walk func(dim, at int)
	walk = func(dim, at int) {
		if dim < last {
			for i := box[dim].from; i < box[dim].to; i++ {
				walk(dim+1, at+i*h.stride[dim])
			}
			return
		}
		l.begin = append(l.begin, at+box[last].from)
	}
	walk(0, 0)
	if n := len(l.begin); l.begin[n-1]-l.begin[0] == (n-1)*l.length { // the runs are contiguous
		l.begin, l.length = l.begin[:1], n*l.length
	} else {
		l.buffer = make([]T, n*l.length)
	}
	return l
}

// bytes returns the memory from which elements of a block are sent, or into which they are
// received.
func (l *layer[T]) bytes(block []T) []byte {
	if l.buffer == nil {
		return element.Bytes(block[l.begin[0]:][:l.length])
	}
	return element.Bytes(l.buffer)
}

// pack copies the elements of a block into the buffer.
func (l *layer[T]) pack(block []T) {
	switch {
	case l.buffer == nil:
	case l.length == 1:
		for i, at := range l.begin {
			l.buffer[i] = block[at]
		}
	default:
		for i, at := range l.begin {
			copy(l.buffer[i*l.length:][:l.length], block[at:])
		}
	}
}

// unpack is its inverse.
func (l *layer[T]) unpack(block []T) {
	switch {
	case l.buffer == nil:
	case l.length == 1:
		for i, at := range l.begin {
			block[at] = l.buffer[i]
		}
	default:
		for i, at := range l.begin {
			copy(block[at:][:l.length], l.buffer[i*l.length:])
		}
	}
}

// Len is the number of cells of a block, ghost cells included.
func (h *Halo[T]) Len() int { return h.stride[0] * h.extent[0] }

// Extent is the number of cells of a block in each dimension, ghost cells included.
func (h *Halo[T]) Extent() []int { return slices.Clone(h.extent) }

// Index is the position of a cell in a block. The first cell that is not a ghost cell has
// coordinates 0. Ghost cells before it have negative coordinates.
func (h *Halo[T]) Index(coords ...int) int {
	if len(coords) != len(h.extent) {
		throw(mpiErrorf("Index", ClassOther, "%d coordinates, expected one for each of the %d dimensions", len(coords), len(h.extent)))
	}
	at := 0
	for i, x := range coords {
		if x < -h.width || x >= h.extent[i]-h.width {
			throw(mpiErrorf("Index", ClassOther, "coordinate %d in dimension %d, expected %d to %d", x, i, -h.width, h.extent[i]-h.width-1))
		}
		at += (x + h.width) * h.stride[i]
	}
	return at
}

// Start updates the ghost cells of a block: it sends the outermost cells to the neighbours and
// receives the ghost cells. Ghost cells beyond a border are not changed. Until the future is
// done, cells may be read but not written, and ghost cells may be neither read nor written. It
// is collective over the grid. A Halo updates one block at a time.
func (h *Halo[T]) Start(block []T) *future.Future[struct{}] {
	const op = "Halo"
	if h == nil {
		return nowhere[struct{}](op)
	}
	h.grid.notInReduction("begins", op) // while h is not busy
	k := check{op: op}
	k.length("block", len(block), h.Len())
	k.that(k.err != nil || h.busy.CompareAndSwap(false, true), ClassOther, "the Halo is updating another block, expected a Wait for that first")
	c, what := h.grid.Comm, call{Kind: signature.Halo, Of: element.TypeOf[T]().Element}
	if k.err != nil {
		return c.run(what, k.err, nil)
	}
	h.block, h.promise = block, c.proc.untyped.get()
	f := h.promise.Future()
	r := (*haloRun[T])(h)
	r.cell().Keep(c.keeper)
	c.proc.calls.Add(1)
	c.startExchange(&h.exchange, what, nil, r, r)
	return f
}

// A haloRun is a Halo while it exchanges a block.
type haloRun[T any] Halo[T]

func (h *haloRun[T]) cell() *waiting.Cell { return waiting.Of(h.promise.Future()) }

func (h *haloRun[T]) Step(k int, x *collective.Exchange) bool {
	if k > 0 {
		for _, s := range h.steps[k-1] {
			if s.peer != ProcNull {
				s.ghosts.unpack(h.block)
			}
		}
	}
	if k == len(h.steps) {
		return false
	}
	sides := h.steps[k]
	for i := range sides { // after and before: see newCart
		if s := sides[i^1]; s.peer != ProcNull {
			x.Recv(s.peer, s.ghosts.bytes(h.block))
		}
	}
	for _, s := range sides {
		if s.peer != ProcNull {
			s.cells.pack(h.block)
			x.Send(s.peer, s.cells.bytes(h.block))
		}
	}
	return true
}

// Ended ends the operation.
func (h *haloRun[T]) Ended(err error) {
	c, p := h.grid.Comm, h.promise
	h.block, h.promise = nil, nil
	h.busy.Store(false)
	p.Complete(struct{}{}, c.callFailure(h.exchange.Name, err, waiting.Of(p.Future())))
	c.proc.callEnded()
}
