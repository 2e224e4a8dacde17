package main

import (
	"fmt"
	"time"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// oneError compares an error under the black channel with Allreduce of one int in virtual time: all
// ranks are inside an operation, and one signals. The duration ends when the last rank has the
// verdict; it is the longest for several signalling ranks.
func oneError(n int) func(config) result {
	return func(c config) result {
		if c.tooMany(n) {
			return skipped
		}
		worst, by := slowestError(n)
		return result{samples{float64(worst)}, samples{float64(inStep(n, (*virtualRank).allreduce))}, fmt.Sprintf("rank %d signals", by)}
	}
}

// errorsAtAll compares simultaneous errors of all ranks with an error of one rank.
func errorsAtAll(n int) func(config) result {
	return func(c config) result {
		if c.tooMany(n) {
			return skipped
		}
		all := make([]int, n)
		for r := range all {
			all[r] = r
		}
		worst, _ := slowestError(n)
		return result{samples{float64(errorsOf(n, all...))}, samples{float64(worst)}, ""}
	}
}

func slowestError(n int) (worst time.Duration, by int) {
	for _, r := range []int{0, 1, n/2 - 1, n / 2, n - 1} {
		if d := errorsOf(n, r); d > worst {
			worst, by = d, r
		}
	}
	return worst, by
}

// errorsOf returns the duration of errors of 16 bytes, one at each of the ranks.
func errorsOf(n int, ranks ...int) (last time.Duration) {
	const start = time.Microsecond
	s := newBareSimulation(n, never)
	clients := make([]joiner, n)
	for i := range clients {
		c := &clients[i]
		c.virtualRank = &s.ranks[i]
		s.At(0, i, func() {
			dup, err := c.comm.Sub(transport.ErrorChannelName(), nil)
			must(err)
			c.Channel = blackchannel.New(dup, 0, nil, c)
			c.Listen()
		})
	}
	for _, r := range ranks {
		s.At(start, r, func() { clients[r].Raise(make([]byte, 16), false, nil) })
	}
	must(s.Run())
	for r := range clients {
		if clients[r].reports != len(ranks) {
			panic(fmt.Sprintf("rank %d has %d reports, expected %d", r, clients[r].reports, len(ranks)))
		}
		last = max(last, clients[r].told-start)
	}
	return last
}

// joiner is the client of a rank that is always inside an operation.
type joiner struct {
	*virtualRank
	*blackchannel.Channel
	reports int
	told    time.Duration // when the verdict came
}

func (c *joiner) Noticed(round uint64, _ int, _ bool) { c.Join(round, nil) }
func (c *joiner) Asked([]byte)                        {}
func (c *joiner) Released()                           {}
func (c *joiner) Resolved(v *errchan.Verdict)         { c.reports, c.told = len(v.Reports), c.now() }
