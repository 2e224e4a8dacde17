package main

import (
	"context"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// replace compares Replace after a death with Shrink after it, in jobs of n ranks and a spare.
func replace(n int) func(config) result {
	return func(c config) result {
		times := c.times(21)
		s := inTurn(c.times(5), func() time.Duration { return repairs(n, times, (*mpicx.Comm).Replace) },
			func() time.Duration { return repairs(n, times, (*mpicx.Comm).Shrink) })
		return result{s[0], s[1], "from the first rank in to the last one out, the spare among them"}
	}
}

// repairs returns the time that a repair of the world takes after its middle rank has died.
func repairs(n, times int, repair func(*mpicx.Comm) *future.Future[*mpicx.Comm]) time.Duration {
	spans := make([]span, times)
	for i := range spans {
		all := newGate(n - 1)
		must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
			if world.Incarnation() > 0 {
				now := time.Now()
				spans[i].add(now, now)
				return world.Barrier().Wait(ctx)
			}
			if world.Rank() == n/2 {
				inject.Die(world)
			}
			_ = world.Barrier().Wait(ctx)
			all.pass()
			begun := time.Now()
			c := repair(world).MustGet(ctx)
			spans[i].add(begun, time.Now())
			return c.Barrier().Wait(ctx)
		}, mpicx.WithRanks(n), mpicx.WithSpares(1), backend("ulfm")))
	}
	return median(spans)
}
