package distributed

import (
	"context"

	"github.com/mpicx/go-mpicx/examples/krylov/sparse"
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// haloTag is the tag of the halo's messages.
const haloTag = 1

// An Operator is a sparse matrix whose rows are divided among ranks. Which
// elements go where was derived from the sparsity, once, by sparse.Localize.
type Operator struct {
	comm    *mpicx.Comm
	local   *sparse.Local
	ghosts  []float64
	send    [][]float64     // a buffer for each neighbour
	pending []future.Waiter // reused
}

// NewOperator returns the Operator of the rank's part of a matrix.
func NewOperator(comm *mpicx.Comm, local *sparse.Local) *Operator {
	a := &Operator{
		comm: comm, local: local,
		ghosts:  make([]float64, len(local.Ghosts)),
		send:    make([][]float64, len(local.Neighbours)),
		pending: make([]future.Waiter, 0, 2*len(local.Neighbours)),
	}
	for i := range local.Neighbours {
		a.send[i] = make([]float64, len(local.Neighbours[i].Send))
	}
	return a
}

// Apply computes y = A·x. The messages are under way while the rank multiplies
// what it has itself. It throws what becomes of them.
func (a *Operator) Apply(ctx context.Context, y, x []float64) {
	pending := a.pending[:0]
	for i := range a.local.Neighbours {
		if nb := &a.local.Neighbours[i]; nb.RecvLo < nb.RecvHi {
			pending = append(pending, mpicx.Recv(a.comm, a.ghosts[nb.RecvLo:nb.RecvHi], nb.Rank, haloTag))
		}
	}
	for i := range a.local.Neighbours {
		if nb := &a.local.Neighbours[i]; len(nb.Send) > 0 {
			nb.Pack(a.send[i], x)
			pending = append(pending, mpicx.Send(a.comm, a.send[i], nb.Rank, haloTag))
		}
	}
	a.local.MulInterior(y, x)
	mpicx.Throw(future.WaitAll(ctx, pending...))
	a.local.MulBoundary(y, a.ghosts)
}
