package main

import (
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
)

// A process is one rank of a run: a program of one goroutine and the rank's ledger, driven as in
// package mpicx.
type process struct {
	soak     *run
	world    int // its rank
	ledger   ledger.Ledger
	carrying bool
	sides    []*member
	left     bool // the program has ended
	sends    int  // sends left until it dies; 0: it does not die in a send

	// The program waits on a member, or computes. inside says that it has entered the ledger.
	on       *member // nil: it computes
	inside   bool
	first    bool
	done     bool // the operation is complete, and errors come before its result
	number   int  // of the wait
	ends     int  // how many more of its waits end by themselves; later waits end only by an error
	replies  int  // how many more errors it answers with an error of its own
	watching bool // all its communicators are broken, and it waits for repairs
}

// A heard is a verdict as the program gets it.
type heard struct {
	of   *member
	told int // how many times
}

func (*heard) Error() string { return "a verdict" }

func (r *run) newProcess(world, sends int) *process {
	p := &process{soak: r, world: world, sends: sends, ends: r.rng.IntN(6)}
	if r.raises > 0 && r.ranks <= 64 {
		p.replies = r.rng.IntN(2)
	}
	p.ledger.Face = func(e *ledger.Error) {
		h := &heard{of: ownerOf(e.Comm)}
		h.of.heard = append(h.of.heard, h)
		e.Face = h
	}
	return p
}

// dead reports whether the process is dead. Then it is told nothing more.
func (p *process) dead() bool { return p.soak.w.Dead(p.world) }

// after continues the program with f after a random time.
func (p *process) after(most time.Duration, f func()) {
	p.soak.w.After(upTo(p.soak.rng, most), p.world, f)
}

// compute is the time between the program's operations.
func (p *process) compute() {
	p.on = nil
	p.after(p.soak.think, p.wait)
}

// wait waits for an operation on one of the program's communicators.
func (p *process) wait() {
	if p.left {
		return
	}
	usable := p.sides
	if p.ends--; p.ends < 0 {
		usable = slices.DeleteFunc(slices.Clone(p.sides), func(m *member) bool { return m.Broken() })
	}
	if len(usable) == 0 {
		if p.watching = true; p.ledger.Watch(1) {
			p.feed(p.ledger.Answer)
		}
		return
	}
	p.on, p.done = usable[p.soak.rng.IntN(len(usable))], false
	p.number++
	if p.ends >= 0 {
		p.goOn(2*p.soak.think+p.soak.detect/4, func() { p.done = true })
	}
	p.look()
}

// goOn continues the wait after a random time: it calls because, then looks again.
func (p *process) goOn(most time.Duration, because func()) {
	number := p.number
	p.after(most, func() {
		if p.on != nil && p.number == number {
			because()
			p.look()
		}
	})
}

// look is one step of a wait, when it begins and whenever something has changed.
func (p *process) look() {
	if p.inside { // end the Wait first: see Ledger.EndWait
		p.inside = false
		p.ledger.EndWait(p.first)
	}
	p.done = p.done || p.on.IsRevoked()
	found, e, pending := p.on.Look(ledger.Take)
	switch {
	case found != ledger.Nothing:
		p.told(e)
		p.compute()
		return
	case p.done && !pending:
		for a := p.on; a != nil; a = a.over {
			if (a.joined || a.unresolved() > 0) && !a.IsCorrupted() {
				a.fail("P7: a wait of rank %d ends with its result, but a round that it has joined, or raised an error for, is open", p.world)
			}
		}
		p.compute()
		return
	case p.done:
		p.feed(p.ledger.Answer)
	}
	var due bool
	p.first, due = p.ledger.BeginWait(&p.on.Comm)
	if p.inside = true; due {
		p.feed(func() { p.ledger.Attend(&p.on.Comm) })
	}
}

// told gives the program an error, which it may pass on to the communicator above.
func (p *process) told(e *ledger.Error) {
	m := hear(e)
	m.note("is told of verdict", e.Verdict.Round)
	if m.over != nil && p.soak.rng.IntN(2) == 0 {
		m = m.over
	}
	m.reply()
}

// hear counts how often a verdict was told, and returns the member that it belongs to.
func hear(e *ledger.Error) *member {
	h := e.Face.(*heard) //nolint:errorlint // this file made it
	if h.told++; h.told == 1 {
		h.of.untold--
	} else if !e.Corrupt() {
		h.of.fail("P1: rank %d is told %d times of %s", h.of.world, h.told, show(e.Verdict))
	}
	return h.of
}

// leave ends the program, on all its communicators. The process lives on.
func (p *process) leave() {
	p.on = nil
	if p.inside {
		p.inside = false
		p.ledger.EndWait(p.first)
	}
	p.feed(p.ledger.Leave)
	for _, m := range p.sides {
		m.ulfm.Leave()
	}
	p.feed(p.ledger.Go)
}

func ownerOf(c *ledger.Comm) *member { return c.Owner.(*member) }

// feed gives the ledger an input and carries out its outputs, unless a caller is doing so already.
func (p *process) feed(input func()) {
	input()
	if p.carrying {
		return
	}
	p.carrying = true
	for o := p.ledger.Next(); o != nil; o = p.ledger.Next() {
		if !p.dead() {
			p.carryOut(o)
		}
	}
	p.carrying = false
}

func (p *process) carryOut(o *ledger.Output) {
	switch o.Action {
	case ledger.Raise:
		m := ownerOf(o.Comm)
		settled := m.consent(o)
		if o.Raised.Leaving {
			m.ulfm.Unwind(o.Raised.Data, settled)
		} else {
			m.ch.Raise(o.Raised.Data, o.Raised.Corrupt, settled)
		}
	case ledger.Join:
		m := ownerOf(o.Comm)
		m.ch.Join(o.Round, m.consent(o))
	case ledger.Lose:
		m := ownerOf(o.Comm)
		m.ulfm.Lose(sortedCopy(m.Failed()))
	case ledger.Complete:
		for _, d := range o.Family {
			ownerOf(d).ulfm.Complete(o.Error.Verdict.Settled)
		}
		p.meanwhile(o)
		p.feed(o.Comm.Settled)
	case ledger.Advance:
		for i, d := range o.Family {
			ownerOf(d).advance(o.Generation, o.Frozen[i], o.Lost != nil && o.Lost[i])
		}
		p.meanwhile(o)
		moved := o.Comm.Moved // o is the ledger's
		p.sides[0].data.Quiesce(func() { p.feed(moved) })
	case ledger.Open:
		m := ownerOf(o.Comm)
		if o.Frozen[0] {
			freeze(o.Family)
		}
		m.begin() // before messages that have already arrived can end the epoch
		m.listenChannel()
	case ledger.Wake:
		if p.on != nil {
			p.goOn(oneOf(p.soak.rng, 0, 0, p.soak.think), func() {})
		}
	case ledger.Forget:
		if m := ownerOf(o.Comm); !m.released {
			m.ch.Release()
		} else {
			m.forgotten()
		}
	case ledger.Leave:
		p.sides[0].data.Leave(false)
	case ledger.Tell:
		p.tell(o.Event)
	}
}

// meanwhile may raise an error, like another goroutine of the program, on a member of the family
// that is about to move.
func (p *process) meanwhile(o *ledger.Output) {
	if p.replies == 0 || p.left || p.dead() || p.soak.rng.IntN(4) > 0 {
		return
	}
	family := o.Comm.Family()
	if m := ownerOf(family[p.soak.rng.IntN(len(family))]); m.ch != nil && !m.left {
		p.replies--
		m.raise(false, false)
	}
}

// isJoining reports whether the ledger has joined the round, and the channel does not know it yet.
func (m *member) isJoining() bool {
	return slices.ContainsFunc(m.ledger.ToDo(), func(o ledger.Output) bool { return o.Comm == &m.Comm && o.Action == ledger.Join })
}

// consent notes what this rank knows when it joins a round, and freezes the family.
func (m *member) consent(o *ledger.Output) []errchan.Settled {
	if o.Family != nil && o.Round == uint64(len(m.verdicts)) {
		m.joined, m.knew = true, len(m.told)
	}
	return freeze(o.Family)
}

// freeze stops agreements and returns their decisions: nil for no family.
func freeze(family []*ledger.Comm) []errchan.Settled {
	if len(family) == 0 {
		return nil
	}
	settled := []errchan.Settled{}
	for _, d := range family {
		if m := ownerOf(d); m.ulfm != nil {
			settled = append(settled, m.ulfm.Freeze()...)
		}
	}
	return settled
}

// tell checks when the rank joins rounds (P2). It relies on the ledger's events alone, because
// other inputs may come before the outputs of an event.
func (p *process) tell(e *ledger.Event) {
	m := ownerOf(e.Comm)
	switch e.Kind {
	case ledger.Noticed, ledger.Signalled:
		m.opened = true
	case ledger.Resolved, ledger.Corrupted:
		m.opened = false
		m.untold++
	case ledger.Joined:
		m.note("joins round", e.Round)
		p.mayJoin(m)
	}
}

func (p *process) mayJoin(m *member) {
	switch {
	case p.left || p.watching || m.unresolved() > 0:
		return
	case p.on == nil:
		m.fail("P2: rank %d joins a round while it computes", p.world)
	case p.done: // it has looked, and found nothing to tell
		return
	}
	for a := p.on; a != nil; a = a.over {
		if a.IsCorrupted() {
			return
		}
	}
	for a := p.on; a != nil; a = a.over {
		if a.untold > 0 {
			m.fail("P2: rank %d joins a round while its program is about to be told of another", p.world)
		}
	}
	for a := p.on; a != nil && a != m; a = a.over {
		if a.opened && a.everywhere && a.DerivedFrom(&m.Comm) {
			m.fail("P2: rank %d joins a round because of a wait that is bound to end with that of a derived communicator", p.world)
		}
	}
}
