package main

import (
	"context"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// solver compares CG on 8 ranks inside Try with CG outside it.
func solver(c config) result {
	var s []samples
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		under, without := solves(ctx, world)
		taken := inTurn(c.times(501), under, without)
		if world.Rank() == 0 {
			s = taken
		}
		return nil
	}, mpicx.WithRanks(8)))
	return result{s[0], s[1], "CG, 4,096 unknowns, 8 ranks"}
}

// solves returns two functions that solve a system on the communicator, under Try and without it,
// and return the time.
func solves(ctx context.Context, world *mpicx.Comm) (under, without func() time.Duration) {
	var mine []distributed.Block
	if world.Rank() == 0 {
		mine = []distributed.Block{{First: 0, CSR: poisson(64)}}
	}
	a, err := distributed.New(ctx, world, 64*64, mine...)
	must(err)
	x, b := make([]float64, a.Rows()), make([]float64, a.Rows())
	for i := range b {
		b[i] = 1 + float64((a.First()+i)%7)
	}
	sys := krylov.System{Space: distributed.Space{Comm: world}, A: a, B: b}
	solve := func(ctx context.Context) error {
		clear(x)
		_, err := krylov.CG(ctx, sys, x, krylov.Options{Tol: 1e-8, MaxIter: 1000})
		return err
	}
	timed := func(run func() error) func() time.Duration {
		return func() time.Duration {
			world.Barrier().MustWait(ctx)
			start := time.Now()
			mpicx.Throw(run())
			world.Barrier().MustWait(ctx)
			return time.Since(start)
		}
	}
	return timed(func() error { return world.Try(ctx, solve) }), timed(func() error { return solve(ctx) })
}

// poisson returns the five-point Laplacian on an n×n grid.
func poisson(n int) *sparse.CSR {
	var entries []sparse.Triplet
	for i := range n * n {
		add := func(j int, v float64) {
			entries = append(entries, sparse.Triplet{Row: int32(i), Col: int32(j), Val: v})
		}
		add(i, 4)
		if i%n > 0 {
			add(i-1, -1)
		}
		if i%n < n-1 {
			add(i+1, -1)
		}
		if i >= n {
			add(i-n, -1)
		}
		if i+n < n*n {
			add(i+n, -1)
		}
	}
	a, err := sparse.NewCSR(n*n, n*n, entries)
	must(err)
	return a
}
