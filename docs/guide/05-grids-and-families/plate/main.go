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
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func attempt(ctx context.Context, a *recovery.Attempt) error {
	dims, err := mpicx.DimsCreate(a.Comm.Size(), 0, 0) // 3, 2
	if err != nil {
		return err
	}
	grid, err := mpicx.CartCreate(a.Comm, dims, nil).Get(ctx)
	if err != nil {
		return err
	}
	_, rows := grid.Block(0, cells) // this rank's share of the plate
	_, cols := grid.Block(1, cells)
	halo, err := mpicx.NewHalo[float64](grid, []int{rows, cols}, 1, false).Get(ctx)
	if err != nil {
		return err
	}

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
	if err := grid.Fprintf(ctx, os.Stdout, "at %v: %d × %d cells from step %d\n", grid.Coords(grid.Rank()), rows, cols, step); err != nil {
		return err
	}

	stride := halo.Index(1, 0) - halo.Index(0, 0)
	for ; step < steps; step++ {
		if step%every == 0 {
			if err := a.Store.Save(ctx, step).Wait(ctx); err != nil {
				return err
			}
		}
		if a.N == 0 && grid.Rank() == 4 && step == 50 {
			return errors.New("a sensor has failed")
		}
		if err := halo.Start(u).Wait(ctx); err != nil {
			return err
		}
		for i := range rows {
			for j := range cols {
				at := halo.Index(i, j)
				v[at] = u[at] + 0.2*(u[at-stride]+u[at+stride]+u[at-1]+u[at+1]-4*u[at])
			}
		}
		u, v = v, u
	}
	return report(ctx, grid, halo, u, rows, cols)
}

func report(ctx context.Context, grid *mpicx.Cart, halo *mpicx.Halo[float64], u []float64, rows, cols int) error {
	heat := []float64{0}
	for i := range rows {
		for j := range cols {
			heat[0] += u[halo.Index(i, j)]
		}
	}
	err := mpicx.Allreduce(grid.Comm, heat, heat, mpicx.Sum).Wait(ctx)
	if err == nil && grid.Rank() == 0 {
		fmt.Printf("%d steps, heat %.6f\n", steps, heat[0])
	}
	return err
}
