package main

import (
	"context"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

func barrier(n int) func(config) result {
	return func(c config) result {
		times := max(10, 60_000/n)
		s := inTurn(c.times(15), func() time.Duration { return mpicxBarriers(n, times) },
			func() time.Duration { return disseminationBarriers(n, times) })
		return result{s[0], s[1], ""}
	}
}

func mpicxBarriers(n, times int) time.Duration {
	var each time.Duration
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		world.Barrier().MustWait(ctx)
		start := time.Now()
		for range times {
			world.Barrier().MustWait(ctx)
		}
		if world.Rank() == 0 {
			each = time.Since(start) / time.Duration(times)
		}
		return nil
	}, mpicx.WithRanks(n)))
	return each
}

// disseminationBarriers is the barrier that one would write by hand: in round k a rank sends to
// rank+2^k and waits for rank-2^k.
func disseminationBarriers(n, times int) time.Duration {
	rounds := 0
	for 1<<rounds < n {
		rounds++
	}
	in := make([][]chan struct{}, n) // of each rank: two sets, used alternately
	for r := range in {
		in[r] = make([]chan struct{}, 2*rounds)
		for k := range in[r] {
			in[r][k] = make(chan struct{}, 1)
		}
	}
	once := func(rank, turn int) {
		for k := range rounds {
			in[(rank+1<<k)%n][turn%2*rounds+k] <- struct{}{}
			<-in[rank][turn%2*rounds+k]
		}
	}
	var each time.Duration
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			once(rank, 1)
			start := time.Now()
			for turn := range times {
				once(rank, turn)
			}
			if rank == 0 {
				each = time.Since(start) / time.Duration(times)
			}
		})
	}
	wg.Wait()
	return each
}
