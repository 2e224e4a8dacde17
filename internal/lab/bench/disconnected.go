package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/mpicx/go-mpicx/internal/binomial"
	"github.com/mpicx/go-mpicx/internal/lab/plots"
)

// disconnected returns the share of random sets of dead ranks that disconnect some living ranks of
// a binomial graph from others (paper 000, section 3.2).
func disconnected(sets, n, dead int) float64 {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(dead)))
	const living, gone = 0, 1
	state, queue, order := make([]byte, n), make([]int, 0, n), make([]int, n)
	for i := range order {
		order[i] = i
	}
	cut := 0
	for range sets {
		clear(state)
		for i := range dead { // the first steps of a shuffle
			k := i + rng.IntN(n-i)
			order[i], order[k] = order[k], order[i]
			state[order[i]] = gone
		}
		queue = append(queue[:0], order[dead])
		state[order[dead]] = gone // reached
		for head := 0; head < len(queue); head++ {
			for i := range binomial.Degree(n) {
				if r := binomial.Neighbor(queue[head], n, i); r >= 0 && state[r] == living {
					state[r] = gone
					queue = append(queue, r)
				}
			}
		}
		if len(queue) < n-dead {
			cut++
		}
	}
	return float64(cut) / float64(sets)
}

// sets is the number of sets of dead ranks to draw.
func (c config) sets(n int) int {
	switch {
	case c.quick:
		return 10
	case n > 6000:
		return 200
	}
	return 2000
}

// disconnectedRow has the share for the largest number of dead ranks below half.
func disconnectedRow(n int) func(config) result {
	return func(c config) result {
		sets := c.sets(n)
		return result{note: fmt.Sprintf("%.2f %% of %d sets; asked: < 1 %%", 100*disconnected(sets, n, n/2-1), sets)}
	}
}

// drawDisconnected draws the share over the percentage of dead ranks.
func drawDisconnected(c config) *panel {
	p := &panel{title: "Binomial graphs that dead ranks disconnect", label: "% of ranks that are dead", unit: "% of sets of dead ranks", most: 100, tick: plots.Number}
	for percent := 5; percent < 100; percent += 5 {
		p.x = append(p.x, float64(percent))
		for _, n := range []int{16, 64, 576, 6000} {
			p.add(plots.Number(float64(n))+" ranks", 100*disconnected(c.sets(n), n, n*percent/100), 0)
		}
	}
	return p
}
