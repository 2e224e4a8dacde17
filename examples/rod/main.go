// Rod computes how heat spreads in a rod, on 4 ranks. The process of rank 2 dies in step 250.
// A spare takes its place, and all ranks continue from the newest checkpoint.
//
//	go run -tags ulfm ./examples/rod
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

func main() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, solve, recovery.Replace(), recovery.Checkpoint(checkpoint.Partner(1)))
	}, mpicx.WithRanks(4), mpicx.WithSpares(1))
	mpicx.Exit(err)
}

// solve runs at all ranks at once, and again after a rank has failed or died.
func solve(ctx context.Context, a *recovery.Attempt) error {
	grid := mpicx.CartCreate(a.Comm, []int{a.Comm.Size()}, nil).MustGet(ctx)
	halo := mpicx.NewHalo[float64](grid, []int{100}, 1, false).MustGet(ctx)
	u := make([]float64, halo.Len()) // this rank's 100 cells, and one of each neighbour's
	if grid.Rank() == 0 {
		u[0] = 100 // degrees, at this end of the rod
	}

	a.Store.Protect("u", &u)
	step, err := a.Store.Restore(ctx) // the newest version that every rank has
	if err != nil && !errors.Is(err, checkpoint.ErrNone) {
		return err
	}
	if grid.Rank() == 0 {
		fmt.Printf("attempt %d starts at step %d; cause: %v\n", a.N, step, a.Cause)
	}

	for ; step < 1000; step++ {
		if step%100 == 0 {
			a.Store.Save(ctx, step).MustWait(ctx) // a neighbour has a copy of u
		}
		if step == 250 && grid.Rank() == 2 && a.N == 0 {
			inject.Die(a.Comm) // what kill -9 does to a process
		}
		halo.Start(u).MustWait(ctx) // an error of any rank ends it, and solve with it
		diffuse(u)
	}

	heat := mpicx.ReduceValue(grid.Comm, sum(u), func(x, y float64) float64 { return x + y }, 0).MustGet(ctx)
	if grid.Rank() == 0 {
		fmt.Printf("after %d steps the rod holds %.3f\n", step, heat)
	}
	return grid.Close(ctx)
}

// diffuse does one step of time for the cells of one rank.
func diffuse(u []float64) {
	before := u[0]
	for i := 1; i < len(u)-1; i++ {
		before, u[i] = u[i], u[i]+0.4*(before-2*u[i]+u[i+1])
	}
}

// sum adds the cells up, those of neighbours left out.
func sum(u []float64) (s float64) {
	for _, v := range u[1 : len(u)-1] {
		s += v
	}
	return s
}
