// Rod computes how heat spreads in a rod, whose cells are divided among ranks.
package main

import (
	"context"
	"math"
	"os"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

const cells = 8 // of each rank

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), rod, mpicx.WithRanks(4)))
}

// rod is what each rank runs.
func rod(ctx context.Context, world *mpicx.Comm) error {
	left, right := world.Rank()-1, world.Rank()+1
	if left < 0 {
		left = mpicx.ProcNull // nobody
	}
	if right == world.Size() {
		right = mpicx.ProcNull
	}
	u, v := make([]float64, cells+2), make([]float64, cells+2) // with a ghost cell at each end
	if left == mpicx.ProcNull {
		u[0], v[0] = 1, 1 // the left end of the rod is kept at 1, the right end at 0
	}

	step := 0
	for change := []float64{1}; change[0] > 1e-6; step++ {
		ghosts := []future.Waiter{
			mpicx.Recv(world, u[:1], left, 1),
			mpicx.Recv(world, u[cells+1:], right, 2),
			mpicx.Send(world, u[cells:cells+1], right, 1),
			mpicx.Send(world, u[1:2], left, 2),
		}
		inside := relax(u, v, 2, cells) // these cells need no ghost cell
		if err := future.WaitAll(ctx, ghosts...); err != nil {
			return err
		}
		change[0] = max(inside, relax(u, v, 1, 2), relax(u, v, cells, cells+1))
		if err := mpicx.Allreduce(world, change, change, mpicx.Max).Wait(ctx); err != nil {
			return err
		}
		u, v = v, u
	}
	return world.Fprintf(ctx, os.Stdout, "%d steps, u from %.3f to %.3f\n", step, u[1], u[cells])
}

// relax computes the next step of the cells from first to last-1. It returns the largest change.
func relax(u, v []float64, first, last int) (change float64) {
	for i := first; i < last; i++ {
		v[i] = u[i] + 0.4*(u[i-1]-2*u[i]+u[i+1])
		change = max(change, math.Abs(v[i]-u[i]))
	}
	return change
}
