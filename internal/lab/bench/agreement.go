package main

import (
	"fmt"
	"time"
)

// agreement compares Agree with Allreduce of one int in virtual time. All ranks begin each in step.
// The duration is the longest at any rank.
func agreement(n int) func(config) result {
	return func(c config) result {
		if c.tooMany(n) {
			return skipped
		}
		return result{samples{float64(inStep(n, (*virtualRank).agree))}, samples{float64(inStep(n, (*virtualRank).allreduce))}, ""}
	}
}

// inStep returns the duration of an operation.
func inStep(n int, op func(*virtualRank, func(error))) time.Duration {
	return newSimulation(n, never).operate(op)
}

// operate begins an operation at all ranks, and returns the time until the last living rank has
// ended it.
func (s *simulation) operate(op func(*virtualRank, func(error))) (last time.Duration) {
	const start = time.Microsecond
	over := make([]bool, len(s.ranks))
	for i := range s.ranks {
		r := &s.ranks[i]
		s.At(start, i, func() {
			op(r, func(err error) {
				must(err)
				over[i] = true
				last = max(last, r.now()-start)
			})
		})
	}
	must(s.Run())
	for i := range over {
		if !over[i] && !s.Dead(i) {
			panic(fmt.Sprintf("rank %d hangs", i))
		}
	}
	return last
}

// agreementWithDeath is agreement with a death. Each survivor learns of it after the time of one
// message, as if the network reported it. The result is the worst of several victims, from leaves
// to the root, and several moments.
func agreementWithDeath(n int) func(config) result {
	return func(c config) result {
		if c.tooMany(n) {
			return skipped
		}
		theirs := inStep(n, (*virtualRank).allreduce)
		alone := inStep(n, (*virtualRank).agree)
		root2 := 1 // the root of the largest proper subtree
		for 2*root2 < n {
			root2 *= 2
		}
		victims, moments := []int{0, 1, root2, n / 2, n - 1}, 8
		switch {
		case c.quick:
			victims, moments = victims[:1], 2
		case n > 6000:
			victims, moments = []int{0, root2}, 4
		}
		var worst time.Duration
		var note string
		for _, victim := range victims {
			for k := range moments {
				at := alone * time.Duration(k) / time.Duration(moments)
				s := newSimulation(n, wire())
				s.KillAt(time.Microsecond+at, victim)
				if d := s.operate((*virtualRank).agree); d > worst {
					worst = d
					note = fmt.Sprintf("rank %d dies after %v, all told %v later", victim, at, wire())
				}
			}
		}
		return result{samples{float64(worst)}, samples{float64(theirs)}, note}
	}
}
