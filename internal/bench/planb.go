package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
)

const (
	before = 4 // barriers of plan A
	after  = 5 // and of plan B
)

// spread is how far apart the ranks begin plan A. Were they in step, so would be
// all its barriers, which no program sees: recursive doubling has pairs of ranks
// wait for each other, and lets the later of the two leave earlier.
const spread = 10 * time.Microsecond

// plans are the durations of paper 000's benchmark (section 4.1): barriers on a
// communicator, one that is interrupted by a revoke of it, barriers on another.
// The duration of an operation is the longest that it takes at any rank.
type plans struct {
	before, revoked time.Duration
	after           [after]time.Duration
}

// planRank is one rank of the benchmark.
type planRank struct {
	*virtualRank
	other     transport.Comm // of plan B
	initiator bool
	revokes   *time.Duration // when the initiator does
	k         int            // of the operation under way
	began     time.Duration  // that one
	took      [before + 1 + after]time.Duration
}

var planned = make(map[[2]int]plans)

// planB runs the benchmark, or returns what came of it before. All of a rank's
// time counts: an operation begins when the one before has ended, even if the rank
// is still telling others of the revoke.
func planB(n, initiator int) plans {
	id := [2]int{n, initiator}
	if res, ok := planned[id]; ok {
		return res
	}
	s := newSimulation(n, never)
	rng := rand.New(rand.NewPCG(0, 0))
	ranks := make([]planRank, n)
	revokes := never
	for i := range ranks {
		p := &ranks[i]
		p.virtualRank, p.initiator, p.revokes = &s.ranks[i], i == initiator, &revokes
		other, err := p.comm.Sub(transport.Name{Seq: 1}, nil)
		must(err)
		p.other = other
		s.At(time.Duration(rng.Int64N(int64(spread))), i, func() {
			p.began = p.now()
			p.next()
		})
	}
	must(s.Run())
	var res plans
	for i := range ranks {
		p := &ranks[i]
		if p.k != len(p.took) {
			panic(fmt.Sprintf("rank %d is in operation %d of %d", i, p.k, len(p.took)))
		}
		res.before = max(res.before, p.took[before-1])
		res.revoked = max(res.revoked, p.took[before])
		for k, d := range p.took[before+1:] {
			res.after[k] = max(res.after[k], d)
		}
	}
	planned[id] = res
	return res
}

// next begins the operation that follows.
func (p *planRank) next() {
	switch {
	case p.k == before && p.initiator:
		*p.revokes = p.now()
		p.number++
		p.channel.Revoke()
		p.ended(errRevoked)
	case p.k <= before:
		p.barrier(p.comm, p.ended)
	case p.k < len(p.took):
		p.barrier(p.other, p.ended)
	}
}

func (p *planRank) ended(err error) {
	switch {
	case p.k < before && errors.Is(err, errRevoked): // it has overtaken the barrier before
		p.number += before - p.k
		p.k, p.began = before, *p.revokes
	case (p.k == before) != (errors.Is(err, errRevoked)):
		panic(fmt.Sprintf("rank %d: operation %d ended with %v", p.rank, p.k, err))
	}
	now := p.now()
	p.took[p.k], p.began = now-p.began, now
	p.k++
	p.then(p.next)
}

// initiators are those whose places in the binomial graph differ most from each
// other, if that were no circle.
func initiators(n int) []int { return []int{0, 1, n / 3, n / 2, n - 1} }

// planRow compares durations of plan B's run with a barrier before the revoke.
func planRow(n int, ours func(plans) time.Duration) func(config) result {
	return func(c config) result {
		if c.tooMany(n) {
			return skipped
		}
		from := []int{n / 3}
		if n <= 6000 && !c.quick {
			from = initiators(n)
		}
		var s [2]samples
		for _, i := range from {
			p := planB(n, i)
			s[0] = append(s[0], float64(ours(p)))
			s[1] = append(s[1], float64(p.before))
		}
		if c.figures != nil && n == 60_000 {
			drawByRanks(c.figures)
		}
		note := fmt.Sprintf("rank %d revokes", n/3)
		if len(from) > 1 {
			note = fmt.Sprintf("each of %v revokes", from)
		}
		return result{s[0], s[1], note}
	}
}

func revokedBarrier(p plans) time.Duration { return p.revoked }
func firstAfter(p plans) time.Duration     { return p.after[0] }

// laterAfter is the slowest barrier after the first.
func laterAfter(p plans) time.Duration {
	return max(p.after[1], p.after[2], p.after[3], p.after[4])
}

// byInitiator compares the slowest initiator's revoke with the fastest's, of a
// barrier that all ranks begin in step.
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
		if c.figures != nil && n == 6000 {
			drawByInitiator(c.figures, n)
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

// drawByInitiator draws paper 000's Figure 3.
func drawByInitiator(f figures, n int) {
	c := &curves{title: fmt.Sprintf("Barriers of %d ranks around a revoke", n), label: "rank that revokes"}
	for k := range 9 {
		initiator := k * (n - 1) / 8
		c.x, c.y = append(c.x, float64(initiator)), append(c.y, planB(n, initiator))
	}
	f["revoke-initiator"] = c
}

// drawByRanks draws paper 000's Figure 4, and goes on for a decade.
func drawByRanks(f figures) {
	c := &curves{title: "Barriers around a revoke", label: "ranks", logX: true}
	for _, n := range []int{16, 64, 144, 576, 2000, 6000, 20_000, 60_000} {
		c.x, c.y = append(c.x, float64(n)), append(c.y, planB(n, n/3))
	}
	f["revoke-ranks"] = c
}
