package rod

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Cells is how many cells each rank has.
const Cells = 8

// A Rod is a rank's part of the rod.
type Rod struct {
	U []float64 // the temperature of the cells, and of a ghost cell at each end

	v           []float64 // the next step
	comm        *mpicx.Comm
	left, right int
}

// New returns a rank's part of a rod that is cold, and heated at its left end.
func New(comm *mpicx.Comm) *Rod {
	r := &Rod{make([]float64, Cells+2), make([]float64, Cells+2), comm, comm.Rank() - 1, comm.Rank() + 1}
	if r.left < 0 {
		r.left = mpicx.ProcNull
		r.U[0], r.v[0] = 1, 1
	}
	if r.right == comm.Size() {
		r.right = mpicx.ProcNull
	}
	return r
}

// Advance computes a step. No cell gets hotter than the left end: if one does, the memory of this
// rank has lied, and that is an error of this rank.
func (r *Rod) Advance(ctx context.Context) error {
	err := future.WaitAll(ctx,
		mpicx.Recv(r.comm, r.U[:1], r.left, 1), mpicx.Recv(r.comm, r.U[Cells+1:], r.right, 2),
		mpicx.Send(r.comm, r.U[Cells:Cells+1], r.right, 1), mpicx.Send(r.comm, r.U[1:2], r.left, 2))
	if err != nil {
		return err
	}
	for i := 1; i <= Cells; i++ {
		r.v[i] = r.U[i] + 0.4*(r.U[i-1]-2*r.U[i]+r.U[i+1])
		if !(r.v[i] < 1) { // NaN, too
			return fmt.Errorf("cell %d has temperature %.1g", i, r.v[i])
		}
	}
	r.U, r.v = r.v, r.U
	return nil
}

// Heat returns the sum of all temperatures, at all ranks.
func (r *Rod) Heat(ctx context.Context) (float64, error) {
	sum := []float64{0}
	for _, u := range r.U[1 : Cells+1] {
		sum[0] += u
	}
	err := mpicx.Allreduce(r.comm, sum, sum, mpicx.Sum).Wait(ctx)
	return sum[0], err
}
