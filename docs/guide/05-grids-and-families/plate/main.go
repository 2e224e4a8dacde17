// Plate computes how a hot plate cools whose edges are kept at 0, on a grid of ranks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

const cells, steps, every = 30, 100, 20 // cells of the plate in each direction

func main() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, attempt, recovery.Checkpoint(checkpoint.Partner(1)))
	}, mpicx.WithRanks(6))
	mpicx.Exit(err)
}

// attempt is called at all ranks, and again after an error. recovery.Run catches what MustGet and MustWait throw.
func attempt(ctx context.Context, a *recovery.Attempt) error {
	dims, err := mpicx.DimsCreate(a.Comm.Size(), 0, 0) // 3, 2
	if err != nil {
		return err
	}
	grid := mpicx.CartCreate(a.Comm, dims, nil).MustGet(ctx)
	_, rows := grid.Block(0, cells) // this rank's share of the plate
	_, cols := grid.Block(1, cells)
	halo := mpicx.NewHalo[float64](grid, []int{rows, cols}, 1, false).MustGet(ctx)
	u, v := make([]float64, halo.Len()), make([]float64, halo.Len()) // with ghost cells, row by row
	for i := range rows {
		for j := range cols {
			u[halo.Index(i, j)] = 1
		}
	}

	a.Store.Protect("u", &u)
	step, err := a.Store.Restore(ctx)
	if err != nil && !errors.Is(err, checkpoint.ErrNone) {
		return err
	}
	where := fmt.Sprintf("at %v: %d × %d cells", grid.Coords(grid.Rank()), rows, cols)
	if err := grid.Fprintf(ctx, os.Stdout, "%s from step %d\n", where, step); err != nil {
		return err
	}

	heat := []float64{0}
	stride := halo.Index(1, 0) - halo.Index(0, 0)
	for ; step < steps; step++ {
		if step%every == 0 {
			a.Store.Save(ctx, step).MustWait(ctx)
		}
		if a.N == 0 && grid.Rank() == 4 && step == 50 {
			return errors.New("a sensor has failed")
		}
		halo.Start(u).MustWait(ctx)
		heat[0] = 0
		for i := range rows {
			for j := range cols {
				at := halo.Index(i, j)
				v[at] = u[at] + 0.2*(u[at-stride]+u[at+stride]+u[at-1]+u[at+1]-4*u[at])
				heat[0] += v[at]
			}
		}
		u, v = v, u
	}
	mpicx.Allreduce(grid.Comm, heat, heat, mpicx.Sum).MustWait(ctx)
	if grid.Rank() == 0 {
		fmt.Printf("%d steps, heat %.6f\n", steps, heat[0])
	}
	return nil
}
