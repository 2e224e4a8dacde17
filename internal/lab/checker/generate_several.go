package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// several is what the generator of a program with several goroutines at a rank knows.
//
// Such a program is legal if, besides, an error of a communicator on which goroutines wait is raised
// only in a Try of that communicator, and the outermost is a TryAll. Elsewhere the first goroutine that
// is told of the error would take it from the others (T4). A communicator on which a goroutine listens
// that may outlive its scope, and those derived from it, are afterwards used only in a TryAll of it.
type several struct {
	*rand.Rand
	listening map[int]bool // communicators on which goroutines may have outlived their scope
	parent    map[int]int  // of each communicator made by a doDerive
}

// all reports whether a condition holds for comm and all communicators that it is derived from.
func (g *several) all(comm int, holds func(comm int) bool) bool {
	for holds(comm) {
		parent, derived := g.parent[comm]
		if !derived {
			return true
		}
		comm = parent
	}
	return false
}

// goroutines makes a step with goroutines on comm, or the scope without which comm may not be used. It
// returns nil if any other step may be made.
func (g *generator) goroutines(s *scene, comm int) *step {
	heard := -1 // of these the outermost
	g.several.all(comm, func(c int) bool {
		if g.listening[c] && !s.tried[c] {
			heard = c
		}
		return true
	})
	if heard >= 0 {
		return g.scope(s, heard)
	}
	if g.several.IntN(3) > 0 || !g.several.all(comm, func(c int) bool { return s.tried[c] }) {
		return nil
	}
	p := g.step([]kind{doGroup, doGroup, doGroup, doListen, doWatch}[g.several.IntN(5)], comm)
	p.ranks = g.some()
	if g.several.IntN(3) > 0 {
		p.seed = 1 + g.several.Uint64N(1<<32)
	}
	p.outside = g.several.IntN(3) == 0
	switch p.kind {
	case doGroup:
		p.how, p.stops = g.several.IntN(raises), g.several.IntN(2) == 0
		p.arg = g.several.IntN(2)
		for range 1 + g.several.IntN(4) {
			if member := g.several.IntN(crews); member != crewChild || !g.returns {
				p.crew = append(p.crew, member)
			}
		}
		g.legal(p)
	case doListen:
		if p.arg = g.several.IntN(2); g.several.IntN(2) == 0 {
			p.ranks = 1<<g.ranks - 1
		}
		g.listening[comm] = true
	case doWatch:
		s.watched[comm] = true
	}
	clear(s.aligned)
	return p
}

// legal removes the steps that are wrong in a group. One goroutine begins collective operations on the
// communicator. If some have a Try, the error may be over when another begins: what that waits for then
// ends only by the group's context, and it must not begin a collective operation. Nor does the group's
// context end by an error of another kind, because the Try would return that.
func (g *several) legal(p *step) {
	var crew []int
	has := make(map[int]bool)
	for _, member := range p.crew {
		switch {
		case member <= crewRaise && member != crewTry && has[member],
			member == crewTry && (has[crewOp] || has[crewChild] || has[crewRaise] && p.how < bySignal),
			has[crewTry] && (member == crewOp || member == crewChild || member == crewRaise && p.how < bySignal):
			continue
		}
		has[member] = true
		crew = append(crew, member)
	}
	p.crew = crew
	if has[crewTry] {
		p.stops, p.outside = true, false
	} else if has[crewChild] && has[crewRaise] && p.how < bySignal {
		p.stops = false // as above
	}
}

// patient removes goroutines that end when their context ends, where a scope follows. An error may have
// been raised in that scope, which this rank has not come to. A function would then end with an error of
// its own, while the others end with the error: the ranks would be a scope apart. If the scope catches
// the error, the context of the one around remains ended.
func (g *several) patient(steps []*step, last int) {
	for _, s := range steps {
		s.crew = slices.DeleteFunc(s.crew, func(member int) bool { return member >= crewStop && member <= last })
		if s.kind != doScope {
			g.patient(s.body, last)
		}
	}
}

// late says how long one of the step's goroutines computes at a rank before it begins.
func (s *step) late(rank, k int) time.Duration {
	if s.seed == 0 {
		return 0
	}
	return time.Duration(max(0, rand.New(rand.NewPCG(s.seed, uint64(100*rank+k))).IntN(16)-8)) * tick
}
