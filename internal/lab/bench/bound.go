package main

import (
	"runtime"
	"time"
)

// work is the minimum that all ranks of a process together have to do for a collective operation:
// copied elements, because they are made in another rank's buffer; elements combined with the
// rank's own; and goroutines woken, because the message that they wait for comes last.
type work struct{ copied, combined, wakes int }

// costs are the costs of one element and of one wake-up on one core of this machine, in
// nanoseconds.
type costs struct{ copied, combined, wake float64 }

// bound returns the minimum time of the work on n ranks, if every core works all the time.
func (w work) bound(c costs, n int) float64 {
	cores := min(n, runtime.GOMAXPROCS(0))
	return (float64(w.copied)*c.copied + float64(w.combined)*c.combined + float64(w.wakes)*c.wake) / float64(cores)
}

// costsOf measures the costs with n pairs of buffers of e elements, so that caches hold the same
// fraction of them as with n ranks.
func costsOf(cfg config, n, e int) costs {
	from, to := make([][]float64, n), make([][]float64, n)
	for i := range from {
		from[i], to[i] = ones(e), ones(e)
	}
	each := func(f func(dst, src []float64)) func() time.Duration {
		times := 1 + 1<<20/(n*e)
		return func() time.Duration {
			start := time.Now()
			for range times {
				for i := range from {
					f(to[i], from[i])
				}
			}
			return time.Since(start) * 1000 / time.Duration(times*n*e) // ps
		}
	}
	s := inTurn(cfg.times(11), each(func(dst, src []float64) { copy(dst, src) }), each(combine),
		func() time.Duration { return channelRoundTrips(10_000) })
	return costs{s[0].median() / 1000, s[1].median() / 1000, s[2].median() / 2}
}
