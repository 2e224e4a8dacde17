package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/sim"
	"github.com/mpicx/go-mpicx/internal/transport"
)

const (
	before = 4 // operations of plan A
	after  = 5 // and of plan B
)

const (
	// spread is the range of the times at which ranks begin plan A. If they began in step, all its
	// barriers would be in step, which no real program sees: recursive doubling makes pairs of
	// ranks wait for each other, and lets the later one of a pair leave earlier.
	spread = 10 * time.Microsecond
	// jitter is the system's noise: it makes an overhead a third longer on average.
	jitter = 100 * time.Nanosecond
)

// A plan is paper 000's benchmark (section 4.1): collective operations on a communicator, one that
// a revoke interrupts, and operations on another communicator. A different rank revokes in each
// run, or always the initiator.
type plan struct {
	ranks     int
	bytes     int // of Allreduce; 0: it is Barrier
	initiator int // or the constant anybody
}

const anybody = -1

func (p plan) String() string {
	if p.bytes == 0 {
		return "Barrier"
	}
	return "Allreduce of " + size(p.bytes)
}

// size formats a number of bytes.
func size(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// planTimes are the durations of a plan's operations in its runs. The duration of an operation is
// the longest at any rank.
type planTimes struct {
	before, revoked samples
	after           [after]samples
}

// laterAfter returns, for each run, the duration of the slowest operation after the first.
func (d *planTimes) laterAfter() samples {
	slowest := make(samples, len(d.before))
	for _, s := range d.after[1:] {
		for run, ns := range s {
			slowest[run] = max(slowest[run], ns)
		}
	}
	return slowest
}

func (d *planTimes) resize(runs int) {
	d.before, d.revoked = make(samples, runs), make(samples, runs)
	for k := range d.after {
		d.after[k] = make(samples, runs)
	}
}

// runs is the number of simulations of n ranks. Above 576 ranks it shrinks with the square of n.
func (c config) runs(n int) int {
	if c.quick {
		return 1
	}
	return max(3, min(c.repetitions, c.repetitions*576*576/(n*n)))
}

var planned = make(map[plan]*planTimes)

// planB returns the times of a plan's runs.
func (c config) planB(p plan) *planTimes {
	if d, ok := planned[p]; ok {
		return d
	}
	d := new(planTimes)
	d.resize(c.runs(p.ranks))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for run := int(next.Add(1)) - 1; run < len(d.before); run = int(next.Add(1)) - 1 {
				p.run(run, d)
			}
		})
	}
	wg.Wait()
	planned[p] = d
	return d
}

// A planRun is one run.
type planRun struct {
	plan
	buf     []byte
	revokes time.Duration // when the initiator revokes
}

// planRank is one rank of a run.
type planRank struct {
	*virtualRank
	run       *planRun
	other     transport.Comm // the communicator of plan B
	initiator bool
	k         int           // the number of the current operation
	began     time.Duration // when it began
	took      [before + 1 + after]time.Duration
}

// run runs the benchmark. All of a rank's time counts: an operation begins when the previous one
// has ended, even if the rank is still passing on the revoke.
func (p plan) run(number int, d *planTimes) {
	model := cray
	model.Jitter = jitter
	s := simulationOf(sim.Config{Ranks: p.ranks, Model: model, Seed: uint64(number), Weightless: true}).withChannels()
	rng := rand.New(rand.NewPCG(uint64(number), 1))
	initiator := p.initiator
	if initiator == anybody {
		initiator = rng.IntN(p.ranks)
	}
	run := &planRun{plan: p, revokes: never}
	if p.bytes > 0 {
		run.buf, s.void = make([]byte, p.bytes), make([]byte, p.bytes)
	}
	ranks := make([]planRank, p.ranks)
	for i := range ranks {
		r := &ranks[i]
		r.virtualRank, r.run, r.initiator = &s.ranks[i], run, i == initiator
		other, err := r.comm.Sub(transport.Name{Seq: 1}, nil)
		must(err)
		r.other = other
		s.At(time.Duration(rng.Int64N(int64(spread))), i, func() {
			r.began = r.now()
			r.next()
		})
	}
	must(s.Run())
	for i := range ranks {
		r := &ranks[i]
		if r.k != len(r.took) {
			panic(fmt.Sprintf("rank %d is in operation %d of %d", i, r.k, len(r.took)))
		}
		most := func(s samples, k int) { s[number] = max(s[number], float64(r.took[k])) }
		most(d.before, before-1)
		most(d.revoked, before)
		for k := range d.after {
			most(d.after[k], before+1+k)
		}
	}
}

// next begins the next operation.
func (r *planRank) next() {
	switch {
	case r.k == before && r.initiator:
		r.run.revokes = r.now()
		r.number++
		r.channel.Revoke()
		r.ended(errRevoked)
	case r.k <= before:
		r.operate(r.comm)
	case r.k < len(r.took):
		r.operate(r.other)
	}
}

func (r *planRank) operate(comm transport.Comm) {
	if r.run.bytes == 0 {
		r.barrier(comm, r.ended)
	} else {
		r.combine(comm, r.run.buf, r.ended)
	}
}

func (r *planRank) ended(err error) {
	switch {
	case r.k < before && errors.Is(err, errRevoked): // the revoke has overtaken the previous operation
		r.number += before - r.k
		r.k, r.began = before, r.run.revokes
	case (r.k == before) != (errors.Is(err, errRevoked)):
		panic(fmt.Sprintf("rank %d: operation %d ended with %v", r.rank, r.k, err))
	}
	now := r.now()
	r.took[r.k], r.began = now-r.began, now
	r.k++
	r.whenFree(r.next)
}

// planRows compare the operations at and after a revoke with those before.
func planRows() (all []row) {
	add := func(p plan, reach float64, what, against string, ours func(*planTimes) samples) {
		all = append(all, row{
			what: fmt.Sprintf("virtual: %v, %s, %d ranks", p, what, p.ranks), against: against, reach: reach, virtual: true,
			measure: func(c config) result {
				if c.tooMany(p.ranks) {
					return skipped
				}
				d := c.planB(p)
				o := ours(d)
				return result{o, d.before, fmt.Sprintf("mean %s ± %s, before %s ± %s, %d runs",
					short(o.mean()), short(o.deviation()), short(d.before.mean()), short(d.before.deviation()), len(o))}
			},
		})
	}
	three := func(p plan, reach [3]float64) {
		add(p, reach[0], "interrupted by revoke", "the one before", func(d *planTimes) samples { return d.revoked })
		add(p, reach[1], "1st after a revoke", "the one before", func(d *planTimes) samples { return d.after[0] })
		add(p, reach[2], "slowest of the 2nd to 5th after it", "the one before", (*planTimes).laterAfter)
	}
	for _, n := range []int{64, 576, 6000, 60_000} { // Figure 4
		three(plan{n, 0, anybody}, [3]float64{1, 2, 1.1})
		three(plan{n, 8, anybody}, [3]float64{1, 2, 1.1})
	}
	for _, bytes := range planSizes[1:] { // Figure 5
		three(plan{6000, bytes, anybody}, [3]float64{})
	}
	return all
}

// planSizes are the sizes of Figure 5.
var planSizes = []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}

// initiators are the ranks whose places in the binomial graph would differ most if the graph were
// not symmetric.
func initiators(n int) []int { return []int{0, 1, n / 3, n / 2, n - 1} }

// byInitiator compares the slowest initiator's revoke with the fastest's, of a barrier that all
// ranks begin in step.
func byInitiator(n int) func(config) result {
	return func(c config) result {
		if c.tooMany(n) {
			return skipped
		}
		slowest, fastest := time.Duration(0), never
		for _, initiator := range initiators(n) {
			d := revokeInStep(n, initiator)
			slowest, fastest = max(slowest, d), min(fastest, d)
		}
		return result{samples{float64(slowest)}, samples{float64(fastest)}, "begun in step"}
	}
}

func revokeInStep(n, initiator int) (last time.Duration) {
	s := newSimulation(n, never)
	const start = time.Microsecond
	for i := range s.ranks {
		r := &s.ranks[i]
		s.At(start, i, func() {
			if i == initiator {
				r.channel.Revoke()
				return
			}
			r.barrier(r.comm, func(error) { last = max(last, r.now()-start) })
		})
	}
	must(s.Run())
	return last
}

func (s samples) mean() float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return sum / float64(len(s))
}

// deviation is the standard deviation of one sample.
func (s samples) deviation() float64 {
	mean, sum := s.mean(), 0.0
	for _, v := range s {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(max(1, len(s)-1)))
}
