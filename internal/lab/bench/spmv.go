package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
)

// spmv compares the product of a distributed matrix of 10^6 rows and a vector with a triad, a = b + s c,
// that reads and writes as many bytes, on 2 ranks.
func spmv(c config) result {
	n := 1000
	if c.quick {
		n = 100
	}
	var s []samples
	var moved float64
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		var mine []distributed.Block
		if world.Rank() == 0 {
			mine = []distributed.Block{{First: 0, CSR: poisson(n)}}
		}
		a, err := distributed.New(ctx, world, n*n, mine...)
		must(err)
		x, y := ones(a.Rows()), ones(a.Rows())
		bytes := a.NNZ()*(8+4) + a.Rows()*(8+8+8) // values and columns; row pointers, x and y
		ta, tb, tc := ones(bytes/24), ones(bytes/24), ones(bytes/24)
		timed := func(do func()) func() time.Duration {
			return func() time.Duration {
				world.Barrier().MustWait(ctx)
				start := time.Now()
				do()
				world.Barrier().MustWait(ctx)
				return time.Since(start)
			}
		}
		taken := inTurn(c.times(51), timed(func() { a.Apply(ctx, y, x) }), timed(func() { triad(ta, tb, tc, 3) }))
		if world.Rank() == 0 {
			s, moved = taken, float64(2*bytes)
		}
		return nil
	}, mpicx.WithRanks(2)))
	return result{s[0], s[1], fmt.Sprintf("five-point Laplacian, %d unknowns, 2 ranks, %.0f MB, %.1f GB/s", n*n, moved/1e6, moved/s[0].median())}
}

func triad(a, b, c []float64, s float64) {
	b, c = b[:len(a)], c[:len(a)]
	for i := range a {
		a[i] = b[i] + s*c[i]
	}
}
