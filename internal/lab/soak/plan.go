package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mpicx/go-mpicx/internal/sim"
)

// A plan is drawn from a seed before the schedule begins. The programs draw everything else as they
// run.
type plan struct {
	seed   uint64
	ranks  int
	ulfm   bool // false: the black channel
	model  sim.Model
	detect time.Duration // the longest time for news of a death
	slow   float64       // the fraction of the news that takes ten times as long
	lose   float64       // the fraction lost of messages under way from the dead

	span   time.Duration // programs start things at times from 0 to span
	think  time.Duration // the longest time before a program's next step
	deaths []death

	raises, revokes, leaves float64 // averages per rank
	needs                   float64 // the probability that a rank needs one that has died
	early                   float64 // the probability that it reserves all agreements of an epoch at once
	calls                   int     // agreements in each epoch
	shrink                  int     // which of them is a Shrink; none if there are fewer agreements
	traffic                 int     // messages that a rank sends, at most
	dups                    bool    // an epoch begins with a Dup
	kinds                   []kind  // of the teams that are made at the beginning, two generations
}

// A death happens at a time, or when the rank sends a certain message of an error channel.
type death struct {
	rank int
	at   time.Duration
	send int // the first is 1; 0: at says when
}

func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// upTo returns a time from 0 to d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d) + 1))
}

func newPlan(seed uint64, rng *rand.Rand) plan {
	const µs = time.Microsecond
	p := plan{seed: seed, ulfm: rng.IntN(5) > 0, calls: rng.IntN(5), shrink: rng.IntN(6), traffic: rng.IntN(4)}
	switch dice := rng.IntN(4000); {
	case dice == 0:
		p.ranks = 1000 + rng.IntN(3000)
	case dice < 20:
		p.ranks = 65 + rng.IntN(236)
	case dice < 200:
		p.ranks = 25 + rng.IntN(40)
	case dice < 2000:
		p.ranks = 1 + rng.IntN(24)
	default:
		p.ranks = 2 + rng.IntN(7)
	}
	if rng.IntN(4) == 0 {
		p.model = sim.LogGP{Latency: oneOf(rng, 0, µs, 50*µs), Overhead: oneOf(rng, 0, µs/3, 2*µs), Gap: oneOf(rng, 0, µs, 20*µs)}
	} else {
		p.model = sim.Random{Max: oneOf(rng, 0, µs, 50*µs, 2000*µs), Tail: oneOf(rng, 0, 0.02, 0.3)}
	}
	p.detect, p.slow = oneOf(rng, 0, 10*µs, 300*µs, 10000*µs), oneOf(rng, 0, 0, 0.1)
	p.lose = oneOf(rng, 0, 0.1, 0.5, 1)
	p.span, p.think = oneOf(rng, 0, 20*µs, 300*µs, 5000*µs), oneOf(rng, 0, 5*µs, 100*µs, 1000*µs)

	if p.ranks <= 64 && rng.IntN(3) == 0 {
		for k := range kinds {
			if rng.IntN(2) == 0 {
				p.kinds = append(p.kinds, k)
			}
		}
	}

	n := float64(p.ranks)
	p.raises = oneOf(rng, 0, 1., 1, 2, 5) / n
	p.early = oneOf(rng, 0, 0.1, 1)
	if p.ulfm {
		p.revokes = oneOf(rng, 0., 0, 1, 2) / n
		p.leaves = oneOf(rng, 0, 0, 1, n/2) / n
		switch rng.IntN(24) { // ranks that have left lag behind
		case 0:
			p.calls, p.raises, p.leaves = p.calls+6, 0, 0.5
		case 1:
			p.calls, p.raises, p.leaves = 1, 15/n, 0.5
		}
		p.needs = oneOf(rng, 0, 0, 1/n, 0.2, 1)
		p.drawDeaths(rng)
		p.dups = p.ranks <= 64 && rng.IntN(4) == 0
	}
	return p
}

func (p *plan) drawDeaths(rng *rand.Rand) {
	deaths := 0
	switch dice := rng.IntN(20); {
	case dice < 4:
	case dice < 12 || p.ranks > 300:
		deaths = 1 + rng.IntN(3)
	case dice < 19:
		deaths = 1 + rng.IntN(1+p.ranks/2)
	default:
		deaths = p.ranks - 1
	}
	victims := rng.Perm(p.ranks)
	if rng.IntN(3) == 0 { // ranks at the top of the tree: each becomes the root after the previous one
		for i := range victims {
			victims[i] = i
		}
	}
	burst, at := rng.IntN(3) == 0, upTo(rng, 2*p.span)
	for _, victim := range victims[:min(deaths, p.ranks-1)] {
		d := death{rank: victim, at: at}
		switch {
		case burst:
		case rng.IntN(2) == 0:
			d.send = 1 + rng.IntN(12)
		default:
			d.at = upTo(rng, 2*p.span+p.think)
		}
		p.deaths = append(p.deaths, d)
	}
}

// delay draws the time from a death until a survivor learns of it.
func (p *plan) delay(rng *rand.Rand) time.Duration {
	d := upTo(rng, p.detect)
	if p.slow > 0 && rng.Float64() < p.slow {
		d *= 10
	}
	return d
}

func (p *plan) String() string {
	backend := "blackchannel"
	if p.ulfm {
		backend = "ulfm"
	}
	return fmt.Sprintf("seed %d: %d ranks, %s, %v, %d are to die, known after up to %v, %g of what is under way lost",
		p.seed, p.ranks, backend, p.model, len(p.deaths), p.detect, p.lose)
}
