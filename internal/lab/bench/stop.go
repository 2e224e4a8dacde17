package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// stopRows measure Stopping before anybody asks for a stop, how long a stop takes, and Release.
func stopRows() []row {
	all := []row{
		{what: "Stopping, 2 ranks, nobody asks for a stop", against: "an atomic addition", measure: stopping},
		{what: "an Allreduce of a flag instead, 2 ranks", against: "Stopping", measure: flags},
		{what: "Release of 10,000 communicators, 4 ranks", against: "Close", reach: 0.5, measure: releases},
	}
	for _, n := range []int{4, 576} {
		all = append(all, row{what: fmt.Sprintf("Stop to the last rank's StopError, %d ranks", n), against: "Signal to the last rank's error", reach: 2, measure: func(c config) result {
			s := inTurn(c.times(31), toTheLast(n, func(ctx context.Context, c *mpicx.Comm) error { return c.Stop(ctx, errors.New("stop")) }, func(ctx context.Context, c *mpicx.Comm) error {
				for {
					if err := c.Stopping(ctx); err != nil {
						return err
					}
					runtime.Gosched()
				}
			}), toTheLast(n, func(ctx context.Context, c *mpicx.Comm) error { return nil }, func(ctx context.Context, c *mpicx.Comm) error {
				if c.Rank() == 0 {
					return c.SignalError(ctx, 1)
				}
				return c.Barrier().Wait(ctx)
			}))
			return result{s[0], s[1], ""}
		}})
	}
	return all
}

// atEach returns the time of a call at each of 2 ranks.
func atEach(times int, call func(ctx context.Context, world *mpicx.Comm) error) (took time.Duration) {
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		world.Barrier().MustWait(ctx)
		start := time.Now()
		for range times {
			if err := call(ctx, world); err != nil {
				return err
			}
		}
		if world.Rank() == 0 {
			took = time.Since(start) / time.Duration(times)
		}
		return nil
	}, mpicx.WithRanks(2)))
	return took
}

func stoppings() time.Duration {
	return atEach(1_000_000, func(ctx context.Context, world *mpicx.Comm) error { return world.Stopping(ctx) })
}

func stopping(c config) result {
	s := inTurn(c.times(15), stoppings, func() time.Duration {
		var counts [4]struct {
			atomic.Int64
			_ [120]byte
		}
		return atEach(1_000_000, func(_ context.Context, world *mpicx.Comm) error {
			counts[world.Rank()].Add(1)
			return nil
		})
	})
	return result{s[0], s[1], ""}
}

func flags(c config) result {
	s := inTurn(c.times(15), func() time.Duration {
		return atEach(10_000, func(ctx context.Context, world *mpicx.Comm) error {
			return mpicx.Allreduce(world, []bool{false}, []bool{false}, mpicx.LOr).Wait(ctx)
		})
	}, stoppings)
	return result{s[0], s[1], ""}
}

// releases measures how long a rank takes to give up many communicators.
func releases(c config) result {
	until := func(giveUp func(context.Context, *mpicx.Comm)) func() time.Duration {
		return func() (took time.Duration) {
			must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				all := make([]*mpicx.Comm, 10_000)
				for i := range all {
					all[i] = world.Dup().MustGet(ctx)
				}
				world.Barrier().MustWait(ctx)
				start := time.Now()
				for _, c := range all {
					giveUp(ctx, c)
				}
				if world.Rank() == 0 {
					took = time.Since(start)
				}
				return nil
			}, mpicx.WithRanks(4)))
			return took
		}
	}
	s := inTurn(c.times(7), until(func(_ context.Context, c *mpicx.Comm) { c.Release() }),
		until(func(ctx context.Context, c *mpicx.Comm) { mpicx.Throw(c.Close(ctx)) }))
	return result{s[0], s[1], ""}
}

// toTheLast returns a function that measures the time from begin at rank 0 until end has returned
// an error at all ranks, on a new communicator.
func toTheLast(n int, begin, end func(context.Context, *mpicx.Comm) error) func() time.Duration {
	return func() time.Duration {
		var start time.Time
		var last atomic.Int64
		must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
			c := world.Dup().MustGet(ctx)
			world.Barrier().MustWait(ctx)
			if c.Rank() == 0 {
				start = time.Now()
				mpicx.Throw(begin(ctx, c))
			}
			if err := end(ctx, c); err == nil {
				return errors.New("no error")
			}
			now := time.Now().UnixNano()
			for old := last.Load(); now > old && !last.CompareAndSwap(old, now); old = last.Load() {
			}
			return nil
		}, mpicx.WithRanks(n)))
		return time.Duration(last.Load() - start.UnixNano())
	}
}
