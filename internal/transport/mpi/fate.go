package mpi

import (
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// fate is what this process knows of the ends of processes, in a family of
// communicators: one program's. Where processes are mortal, MPI tells of those that
// are killed. One whose program has ended lives on, to pass on errors and to end
// what it has begun, until somebody needs more of it: then it is dead for the
// others of the family, as if it had been killed.
type fate struct {
	family  contextID    // the communicator that the others are made of
	dead    []bool       // by process
	gone    []bool       // whose programs have ended
	absent  atomic.Int32 // how many are dead, or their programs have ended
	expired bool         // this one is dead for the others
}

// fate returns that of a family. Others may have come to an end there before this
// process begins.
func (e *engine) fate(family contextID) *fate {
	f := e.fates[family]
	if f == nil {
		f = &fate{family: family, dead: slices.Clone(e.killed), gone: make([]bool, e.size)}
		for _, dead := range f.dead {
			if dead {
				f.absent.Add(1)
			}
		}
		e.fates[family] = f
	}
	return f
}

// lose notes that MPI has lost a process.
func (e *engine) lose(process int) {
	e.killed[process] = true
	e.losses++
	for _, f := range e.fates {
		e.bury(f, process)
	}
	for id, b := range e.offers {
		if b.peer == process {
			delete(e.offers, id)
		}
	}
}

// bury has those who listen told of a death, and then ends what needs the dead.
func (e *engine) bury(f *fate, process int) {
	if f.dead[process] {
		return
	}
	f.dead[process] = true
	if !f.gone[process] {
		f.absent.Add(1)
	}
	for _, s := range e.sides {
		if rank := s.rankIn(process); s.fate == f && rank >= 0 && s.listener != nil {
			e.news = append(e.news, news{to: s.listener, from: rank, died: true})
		}
	}
	for _, s := range e.sides {
		if rank := s.rankIn(process); s.fate == f && rank >= 0 {
			s.bury(process, rank)
		}
	}
}

// bury ends the requests that need a member that has died, and those of operations of
// all members. If it is this one, all of them.
func (s *side) bury(process, rank int) {
	s.Lose(rank)
	self := process == s.e.rank
	cause := error(&transport.DeadError{Rank: rank})
	if self {
		cause = transport.ErrDied
	}
	needed := func(r *transport.Request) bool { return self || r.Needs(rank) }
	s.e.endAll(s.TakeIf(needed), cause)
	s.endOffers(cause, needed)
	s.DropIf(func(n *match.Node[arrival]) bool { return n.Source == rank && n.Of.head.kind == offer })
}

// leave says to all that this process's program has ended.
func (e *engine) leave(f *fate, failed bool) {
	switch {
	case !e.mortal || f.gone[e.rank]:
	case failed:
		f.gone[e.rank] = true
		e.expire(f)
	default:
		e.sendAll(&head{kind: left, to: f.family})
		e.left(f, e.rank)
	}
}

// sendAll sends a packet to all other processes.
func (e *engine) sendAll(h *head) {
	for p := range e.size {
		if p != e.rank && !e.killed[p] {
			e.packet(p, h, nil)
		}
	}
}

// expire ends this process for the others.
func (e *engine) expire(f *fate) {
	if f.expired {
		return
	}
	f.expired = true
	e.sendAll(&head{kind: dead, to: f.family})
	e.bury(f, e.rank)
}

// needs tells the peer of a request, if that is another process, that it is needed, if its
// program has ended.
func (s *side) needs(r *transport.Request) {
	peer := r.Peer
	if peer == transport.AnySource && r.IsAwaited() {
		peer = s.lastHope()
	}
	if peer < 0 || peer == s.rank || !s.fate.gone[s.process(peer)] {
		return
	}
	s.e.packet(s.process(peer), &head{kind: need, to: s.context, id: uint64(s.fate.family), epoch: r.Epoch}, nil)
}

// lastHope returns a member whose program has ended, if those of all others have as well;
// else -1.
func (s *side) lastHope() int {
	hope := -1
	for r := range s.Size() {
		switch p := s.process(r); {
		case r == s.rank || s.HasLost(r):
		case !s.fate.gone[p]:
			return -1
		case hope < 0:
			hope = r
		}
	}
	return hope
}

// Look asks for what this rank waits for in vain.
func (s *side) Look() {
	if s.fate.absent.Load() > 0 {
		s.e.lock()
		s.askForAny()
		s.e.endAll(s.TakeIf(func(r *transport.Request) bool {
			return s.IsAlone(s.rank, s.Size()) && r.Peer == transport.AnySource && r.IsAwaited() && r.IsMourned()
		}), &transport.DeadError{Rank: transport.AnySource})
		s.e.unlock()
	}
}

// askForAny tells one of the members, all of which have left, that a receive needs them.
func (s *side) askForAny() {
	for _, r := range slices.Collect(s.Posted.All()) {
		if r.Peer == transport.AnySource {
			s.needs(r)
		}
	}
}

// left notes that the program of a process has ended, and tells it who needs it.
func (e *engine) left(f *fate, process int) {
	if !f.gone[process] {
		f.gone[process] = true
		if !f.dead[process] {
			f.absent.Add(1)
		}
	}
	for _, s := range e.sides {
		if s.fate != f {
			continue
		}
		s.askForAny()
		for _, r := range slices.Collect(s.Posted.All()) {
			if r.Peer >= 0 && s.process(r.Peer) == process {
				s.needs(r)
			}
		}
		for r, id := range s.sending {
			if s.process(r.Peer) == process && e.offers[id] != nil {
				s.needs(r)
			}
		}
	}
}

// fated takes a packet about the end of a process.
func (e *engine) fated(source int, h head) {
	switch h.kind {
	case left:
		e.left(e.fate(h.to), source)
	case dead:
		e.bury(e.fate(h.to), source)
	case need:
		// What needs this process in an epoch that it has left will end by itself.
		if s := e.sides[h.to]; s == nil || !h.epoch.Stale(s.Epoch()) {
			e.expire(e.fate(contextID(h.id)))
		}
	}
}
