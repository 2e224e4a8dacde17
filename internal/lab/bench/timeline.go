package main

import (
	"context"
	"os"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// timelineRows measure the cost of a timeline. Without WithTimeline, the only cost is a comparison
// with nil in a Wait that blocks.
func timelineRows() []row {
	return []row{
		{what: "8-byte round trip, with a timeline", against: "without", measure: recordedTrips},
		{what: "Krylov solve, with a timeline", against: "without", measure: recordedSolve},
	}
}

// recorded returns the option, and a function that removes the files.
func recorded() (with mpicx.Option, remove func()) {
	dir, err := os.MkdirTemp("", "mpicx-bench-")
	must(err)
	return mpicx.WithTimeline(dir), func() { must(os.RemoveAll(dir)) }
}

func recordedTrips(c config) result {
	with, remove := recorded()
	defer remove()
	const trips = 5_000
	s := inTurn(c.times(31), func() time.Duration {
		d, _ := mpicxRoundTrips(trips, false, with)
		return d
	}, func() time.Duration {
		d, _ := mpicxRoundTrips(trips, false)
		return d
	})
	return result{s[0], s[1], "two lines for each Wait that blocks"}
}

func recordedSolve(c config) result {
	with, remove := recorded()
	defer remove()
	solve := func(opts ...mpicx.Option) func() time.Duration {
		return func() (took time.Duration) {
			must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				under, _ := solves(ctx, world)
				if d := under(); world.Rank() == 0 {
					took = d
				}
				return nil
			}, append(opts, mpicx.WithRanks(8))...))
			return took
		}
	}
	s := inTurn(c.times(51), solve(with), solve())
	return result{s[0], s[1], "CG, 4,096 unknowns, 8 ranks"}
}
