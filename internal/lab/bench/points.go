package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// roundTrip compares a message there and back with two sends on channels.
func roundTrip(c config) result {
	const trips = 50_000
	var allocations float64
	s := inTurn(c.times(21), func() time.Duration {
		d, a := mpicxRoundTrips(trips, false)
		allocations = a
		return d
	}, func() time.Duration { return channelRoundTrips(trips) })
	return result{s[0], s[1], fmt.Sprintf("%.2f allocations a message", allocations)}
}

func mpicxRoundTrips(n int, bare bool, opts ...mpicx.Option) (each time.Duration, allocations float64) {
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		if bare {
			hook.Of(world).Bare()
		}
		buf := make([]int64, 1)
		var before, after runtime.MemStats
		trips := func(n int) {
			for range n {
				if world.Rank() == 0 {
					mpicx.Send(world, buf, 1, 0)
					mpicx.Recv(world, buf, 1, 0).MustWait(ctx)
				} else {
					mpicx.Recv(world, buf, 0, 0).MustWait(ctx)
					mpicx.Send(world, buf, 0, 0)
				}
			}
		}
		trips(100)
		if world.Rank() == 0 {
			runtime.ReadMemStats(&before)
		}
		start := time.Now()
		trips(n)
		if world.Rank() == 0 {
			each = time.Since(start) / time.Duration(n)
			runtime.ReadMemStats(&after)
			allocations = float64(after.Mallocs-before.Mallocs) / float64(2*n)
		}
		return nil
	}, append(opts, mpicx.WithRanks(2))...))
	return each, allocations
}

func channelRoundTrips(n int) time.Duration {
	there, back := make(chan int64), make(chan int64)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	start := time.Now()
	for i := range n {
		there <- int64(i)
		<-back
	}
	each := time.Since(start) / time.Duration(n)
	close(there)
	return each
}

// large compares a message of 1 MiB with a copy between the same buffers. Like osu_bw, it sends
// windows of messages.
func large(c config) result {
	const size, window, windows = 1 << 20, 64, 5
	from, to := make([]byte, size), make([]byte, size)
	s := inTurn(c.times(21), func() time.Duration {
		var each time.Duration
		must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
			acknowledge := make([]byte, 0)
			fs := make([]future.Waiter, window)
			start := time.Now()
			for range windows {
				if world.Rank() == 0 {
					mpicx.Recv(world, acknowledge, 1, 0).MustWait(ctx) // the receives are posted
					for i := range fs {
						fs[i] = mpicx.Send(world, from, 1, 1)
					}
				} else {
					for i := range fs {
						fs[i] = mpicx.Recv(world, to, 0, 1)
					}
					mpicx.Send(world, acknowledge, 0, 0)
				}
				mpicx.Throw(future.WaitAll(ctx, fs...))
			}
			if world.Rank() == 0 {
				each = time.Since(start) / (window * windows)
			}
			return nil
		}, mpicx.WithRanks(2)))
		return each
	}, func() time.Duration {
		start := time.Now()
		for range window * windows {
			copy(to, from)
		}
		return time.Since(start) / (window * windows)
	})
	return result{s[0], s[1], ""}
}

// waitCost compares round trips with round trips whose Waits have no error channel.
func waitCost(c config) result {
	const trips = 50_000
	s := inTurn(c.times(31), func() time.Duration {
		d, _ := mpicxRoundTrips(trips, false)
		return d
	}, func() time.Duration {
		d, _ := mpicxRoundTrips(trips, true)
		return d
	})
	return result{s[0], s[1], "round trips"}
}
