package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// generate makes the program of a seed. Every program is legal: all ranks of a communicator start
// the same operations on it in the same order, until an error ends this, and each error is handled
// where all ranks of its communicator are at the same place.
//
// Such places are the ends of TryAll. A rank that has left a TryAll knows that all others are at
// least in its second barrier, where no error is reported. So errors may be handled at the end of a
// TryAll if ranks have only computed since the previous one, or since the communicator was made.
// Elsewhere a rank might handle an error that another rank was told of before. Errors of a derived
// communicator may be handled inside it only if the operations up to there are on it, or on those
// derived from it.
//
// A share of the programs, in percent, have several goroutines at a rank: see generateSeveral.
func generate(seed, share uint64) (p *program) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	if more := rand.New(rand.NewPCG(seed, 2)); more.Uint64N(100) < share { // from a source of its own: other programs stay what they were
		g.several = &several{Rand: more, listening: make(map[int]bool), parent: make(map[int]int)}
	}
	p = &program{ranks: 2 + g.IntN(4), backend: "blackchannel"}
	if g.IntN(2) == 0 {
		p.backend = "ulfm"
	}
	p.returns, p.several = g.IntN(8) == 0, g.several != nil
	if g.IntN(3) > 0 {
		p.net = 1 + g.Uint64N(1<<32)
	}
	g.releasing = rand.New(rand.NewPCG(seed, 3)) // the same
	defer func() {
		if g.Rand = rand.New(rand.NewPCG(seed, 4)); g.IntN(4) == 0 { // the same
			p.body = g.addStops(p.body, map[int]bool{world: true})
		}
	}()
	g.ranks, g.derived, g.closed = p.ranks, make(map[int]bool), make(map[int]bool)
	s := &scene{vars: []int{world}, aligned: map[int]bool{world: true}, around: make(map[int]bool), tried: make(map[int]bool), watched: make(map[int]bool)}
	if p.backend == "ulfm" && g.IntN(2) == 0 {
		g.mortal = p.ranks - 1
		p.returns = g.IntN(2) == 0
		g.returns, g.repairs = p.returns, true
		// From a source of its own: other programs stay what they were.
		if g.replacing = rand.New(rand.NewPCG(seed, 1)); g.replacing.IntN(2) == 0 {
			p.spares = 1 + g.replacing.IntN(3)
			g.spares = p.spares
			g.ranks += p.spares
			g.mortal += p.spares - 1
		}
		p.body = append(p.body, g.repair(s, world))
		workers := uint64(1)<<p.ranks - 1
		if g.mortal > 0 && g.dead&workers != workers && g.IntN(3) == 0 { // plans do not know which spare is taken
			p.plan = fmt.Sprintf("kill %d random seed %d of %d", g.doomed(p.ranks), g.IntN(1000), 5+g.IntN(100))
		}
		return p
	}
	for range 1 + g.IntN(3) {
		p.body = append(p.body, g.scope(s, world))
	}
	return p
}

type generator struct {
	*rand.Rand
	ranks  int // with the spares
	spares int
	last   int    // the last step's id
	mortal int    // how many more may die
	dead   uint64 // which have died, as bits

	*several // nil: one goroutine at each rank

	replacing *rand.Rand // draws which repairs replace the dead
	releasing *rand.Rand // draws which ranks release communicators

	repairs bool         // ranks repair after failures
	returns bool         // ErrorsReturn is set as well
	derived map[int]bool // communicators made by a doDerive
	closed  map[int]bool // communicators that a doClose closes
}

// scene is the generator's knowledge of the place in the program.
type scene struct {
	vars    []int        // communicators that may be used
	aligned map[int]bool // communicators whose errors the next TryAll may handle
	depth   int
	scope   *step        // the innermost; nil: none
	around  map[int]bool // communicators of the enclosing scopes
	tried   map[int]bool // those of enclosing Trys and TryAlls
	watched map[int]bool // those on which a goroutine may signal while the steps run
	catcher *step        // the doDerive that catches a panic of a rank that releases its communicator; nil: none
}

// open returns the communicators that may be used and are not closed.
func (g *generator) open(s *scene) []int {
	return slices.DeleteFunc(slices.Clone(s.vars), func(c int) bool { return g.closed[c] })
}

func (s *scene) enter() *scene {
	inner := *s
	inner.aligned, inner.around = maps.Clone(s.aligned), maps.Clone(s.around)
	inner.tried, inner.watched = maps.Clone(s.tried), maps.Clone(s.watched)
	inner.depth++
	return &inner
}

func (g *generator) step(k kind, comm int) *step {
	g.last++
	s := &step{id: g.last, kind: k, comm: comm}
	if g.IntN(2) == 0 {
		s.delay = make([]int, g.ranks)
		for r := range s.delay {
			s.delay[r] = max(0, g.IntN(20)-10)
		}
	}
	return s
}

// some draws one or more ranks, usually one.
func (g *generator) some() uint64 {
	mask := uint64(1) << g.IntN(g.ranks)
	for g.IntN(3) == 0 {
		mask |= 1 << g.IntN(g.ranks)
	}
	if g.IntN(12) == 0 {
		mask = 1<<g.ranks - 1
	}
	return mask
}

// repair makes a body in which ranks may die, and the steps of the survivors. It is the last step
// on the communicator.
func (g *generator) repair(s *scene, comm int) *step {
	p := g.step(doRepair, comm)
	p.ranks = g.Uint64N(1 << g.ranks) // which ranks acknowledge the dead before they agree
	p.replace = g.spares > 0 && g.replacing.IntN(3) > 0
	for range 1 + g.IntN(3) {
		if g.returns && g.IntN(2) == 0 { // with no scope to tell the others of an error
			p.body = append(p.body, g.body(s)...)
		} else {
			p.body = append(p.body, g.scope(s, comm))
		}
	}
	if g.mortal > 0 && g.spares > 0 && g.replacing.IntN(3) > 0 { // more deaths, some of them of spares that were taken
		d := g.step(doLeave, comm)
		d.ranks, d.how = 1<<g.doomed(g.ranks), byDeath
		p.body = slices.Insert(p.body, g.replacing.IntN(len(p.body)+1), d)
	}
	then := &scene{vars: []int{p.id}, aligned: map[int]bool{p.id: true}, around: make(map[int]bool), tried: make(map[int]bool), watched: make(map[int]bool), depth: s.depth + 1}
	if then.depth < 3 && g.IntN(3) > 0 {
		p.afterRepair = append(p.afterRepair, g.repair(then, p.id))
	} else {
		p.afterRepair = append(p.afterRepair, g.scope(then, p.id))
	}
	return p
}

// doomed draws one of the first n ranks, which will die, and which was not drawn before.
func (g *generator) doomed(n int) int {
	g.mortal--
	for {
		if r := g.IntN(n); g.dead>>r&1 == 0 {
			g.dead |= 1 << r
			return r
		}
	}
}

// scope makes a Try, TryAll or Guard on a communicator.
func (g *generator) scope(s *scene, comm int) *step {
	p := g.step(doScope, comm)
	p.how = [...]int{try, try, tryAll, tryAll, tryAll, tryAll, guard}[g.IntN(7)]
	if g.several != nil && p.how != tryAll && !s.tried[comm] && (p.how == try || g.listening[comm]) {
		p.how = tryAll
	}
	inner := s.enter()
	inner.scope, inner.around[comm], inner.catcher = p, true, nil
	if p.how != guard {
		inner.tried[comm] = true
	}
	p.repeat = 1
	if p.how == tryAll {
		p.catch = s.aligned[comm] && g.IntN(5) > 0 && !s.watched[comm]
		if p.catch && g.IntN(4) == 0 {
			p.repeat = 2 + g.IntN(2)
		}
		if p.repeat > 1 {
			inner.aligned = map[int]bool{comm: s.aligned[comm]}
		}
		if p.catch {
			inner.vars = only(s, comm)
		}
	}
	p.body = g.body(inner)
	if g.several != nil && p.how != guard {
		p.defers = max(0, g.several.IntN(2*defers)-defers)
	}
	if !p.keeps() {
		g.several.patient(p.body, crewErr)
	} else if !p.plain() {
		g.several.patient(p.body, crewStop)
	}
	if p.how == tryAll && g.IntN(4) == 0 {
		p.body = append(p.body, g.step(doCheck, comm))
	}
	clear(s.aligned)
	if p.how == tryAll {
		s.aligned[comm] = true
	}
	return p
}

// only returns the communicators that may be used where errors of comm are handled: comm alone,
// because communicators derived from it are made inside.
func only(_ *scene, comm int) []int { return []int{comm} }

// body makes the steps of a scope or of a communicator's block.
func (g *generator) body(s *scene) []*step {
	var steps []*step
	for range 1 + g.IntN(4) {
		if len(g.open(s)) == 0 {
			break
		}
		steps = append(steps, g.any(s))
	}
	return steps
}

// any makes a step.
func (g *generator) any(s *scene) *step {
	vars := g.open(s)
	comm := vars[len(vars)-1] // usually the newest
	if g.IntN(3) == 0 {
		comm = vars[g.IntN(len(vars))]
	}
	choice := g.IntN(100)
	if s.depth > 4 {
		choice %= 60
	}
	if g.several != nil {
		if p := g.goroutines(s, comm); p != nil {
			return p
		}
	}
	if s.catcher != nil && g.releasing.IntN(12) == 0 && !g.closed[s.catcher.id] { // the panic would pass what nobody gives up
		p := g.step(doLeave, s.catcher.id)
		p.ranks, p.how, p.arg = s.catcher.ranks&g.some(), byPanic, s.catcher.id
		return p
	}
	switch {
	case choice < 4:
		return g.closing(s, comm)
	case choice < 6 && g.repairs && g.IntN(4) == 0:
		p := g.step(doRevoke, comm)
		p.ranks = g.some()
		clear(s.aligned)
		return p
	case choice < 30:
		p := g.step(doOp, comm)
		p.outside = g.several != nil && g.several.IntN(3) == 0
		if p.arg = g.IntN(ops + 2); p.arg >= ops {
			p.kind = doPair
		}
		clear(s.aligned)
		return p
	case choice < 48:
		p := g.step(doRaise, comm)
		p.ranks, p.how = g.some(), g.IntN(raises)
		if s.scope == nil && p.how == byThrow || g.several != nil && !s.tried[comm] {
			p.how = byReturn
		}
		if g.IntN(2) == 0 {
			p.arg = 1 + g.IntN(100)
		}
		clear(s.aligned)
		return p
	case choice < 51:
		p := g.step(doExpire, comm)
		p.ranks, p.arg = g.some(), 1+g.IntN(30)
		clear(s.aligned)
		return p
	case choice < 55:
		p := g.step([]kind{doErr, doWork, doWork, doWork}[g.IntN(4)], comm)
		p.ranks = g.some()
		clear(s.aligned)
		return p
	case choice < 56 && s.scope != nil && s.scope.how == guard:
		p := g.step(doLeave, s.scope.comm)
		p.ranks, p.how = g.some(), byPanic
		return p
	case choice < 57 && g.IntN(4) == 0:
		p := g.step(doLeave, comm)
		p.ranks, p.how = g.some(), byGoexit
		return p
	case choice < 59 && g.mortal > 0:
		p := g.step(doLeave, comm)
		p.ranks, p.how = 1<<g.doomed(g.ranks), byDeath
		return p
	case choice < 60:
		p := g.step(doOp, comm)
		p.arg = opBarrier
		clear(s.aligned)
		return p
	case choice < 82:
		return g.scope(s, comm)
	}
	return g.derive(s, comm)
}

// closing makes a step that closes comm. If comm may not be closed, because an enclosing scope is
// on it, it makes a message instead.
func (g *generator) closing(s *scene, comm int) *step {
	defer clear(s.aligned)
	if comm == world || s.around[comm] || !g.derived[comm] {
		return g.step(doPair, comm)
	}
	p := g.step(doClose, comm)
	p.how, p.arg = g.IntN(closings), g.IntN(2)
	if p.how != closeNever { // a rank that has released is no sender
		p.ranks = g.releases()
	}
	g.closed[comm] = true
	return p
}

// releases draws the ranks that release a communicator.
func (g *generator) releases() uint64 {
	all := uint64(1)<<g.ranks - 1
	return [...]uint64{0, all, g.releasing.Uint64() & all}[g.releasing.IntN(3)]
}

// derive makes a step that makes a communicator and uses it.
func (g *generator) derive(s *scene, parent int) *step {
	p := g.step(doDerive, parent)
	p.how, p.absorb, p.close = g.IntN(2), g.IntN(2) == 0, g.IntN(2) == 0
	p.arg, p.ranks = 1+g.IntN(3), g.releases()
	g.derived[p.id] = true
	if g.several != nil {
		g.parent[p.id] = parent
	}
	inner := s.enter()
	if p.absorb {
		inner.vars = nil
	}
	inner.watched = s.watched // until the end of the scope
	inner.vars = append(inner.vars[:len(inner.vars):len(inner.vars)], p.id)
	inner.aligned = map[int]bool{p.id: true}
	if p.absorb && p.ranks != 0 && g.several == nil {
		inner.catcher = p
	}
	p.body = g.body(inner)
	clear(s.aligned)
	return p
}
