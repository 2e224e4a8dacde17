package main

import (
	"runtime"
	"time"
)

// work is the least that all ranks of a process have to do together for a collective
// operation: elements that some rank has to copy, because they arise in a buffer of another;
// elements that it has to combine with its own; and goroutines that have to be woken,
// because what they wait for comes last.
type work struct{ copied, combined, wakes int }

// costs are what one element and one wake-up cost one core of this machine, in nanoseconds.
type costs struct{ copied, combined, wake float64 }

// bound returns how long the work takes n ranks at least, with every core at work all the time.
func (w work) bound(c costs, n int) float64 {
	cores := min(n, runtime.GOMAXPROCS(0))
	return (float64(w.copied)*c.copied + float64(w.combined)*c.combined + float64(w.wakes)*c.wake) / float64(cores)
}

// costsOf measures the costs with n pairs of buffers of e elements, so that as much of them is
// in caches as with n ranks.
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
