//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// fate is what this process knows of the ends of processes. Where they are mortal,
// MPI tells of those that are killed. One whose program has ended lives on, to pass
// on errors and to end what it has begun, until somebody needs more of it: then it
// is dead for the others, as if it had been killed.
type fate struct {
	mortal  bool
	dead    []bool // by process
	gone    []bool // whose programs have ended
	left    bool   // this one's has
	expired bool   // and it is dead for the others
	killed  bool   // MPI has lost a process
}

func (f *fate) init(mortal bool, size int) {
	f.mortal, f.dead, f.gone = mortal, make([]bool, size), make([]bool, size)
}

// mourn asks MPI who has died.
func (e *engine) mourn() {
	ranks := make([]C.int, e.size)
	var n C.int
	if code := C.mx_failed(&ranks[0], C.int(e.size), &n); code != 0 {
		e.fail(failure("MPIX_Comm_get_failed", code))
		return
	}
	for _, p := range ranks[:n] {
		e.killed = true
		e.bury(int(p))
	}
}

// bury has those who listen told of a death, and then ends what needs the dead.
func (e *engine) bury(process int) {
	if e.dead[process] {
		return
	}
	e.dead[process] = true
	for _, s := range e.sides {
		if rank := s.rankIn(process); rank >= 0 && s.listener != nil {
			e.news = append(e.news, news{to: s.listener, from: rank, died: true})
		}
	}
	for _, s := range e.sides {
		if rank := s.rankIn(process); rank >= 0 {
			s.bury(process, &transport.DeadError{Rank: rank})
		}
	}
	for id, b := range e.offers {
		if b.peer == process {
			delete(e.offers, id)
		}
	}
}

// bury ends the requests that need a member that has died, and those of operations of
// all members. If it is this one, all of them.
func (s *side) bury(process int, death *transport.DeadError) {
	if s.lost == nil {
		s.lost = death
	}
	self := process == s.e.rank
	cause := error(death)
	if self {
		cause = transport.ErrDied
	}
	needed := func(r *transport.Request) bool {
		return self || r.Peer == death.Rank || r.Tag < transport.AnyTag
	}
	s.posted = slices.DeleteFunc(s.posted, func(r *transport.Request) bool {
		ends := needed(r)
		if ends {
			s.e.end(r, cause)
		}
		return ends
	})
	for r := range s.sending {
		if needed(r) && s.withdraw(r) {
			s.e.end(r, cause)
		}
	}
	s.arrived = slices.DeleteFunc(s.arrived, func(a *arrival) bool { return a.source == process && a.head.kind == offer })
}

// involved returns the error of a request that needs a process which has died.
func (s *side) involved(r *transport.Request) error {
	switch {
	case s.lost == nil:
	case r.Tag < transport.AnyTag:
		return s.lost
	case r.Peer >= 0 && s.e.dead[s.process(r.Peer)]:
		return &transport.DeadError{Rank: r.Peer}
	}
	return nil
}

// leave says to all that this process's program has ended.
func (e *engine) leave(failed bool) {
	if !e.mortal || e.left {
		return
	}
	e.left = true
	if failed {
		e.expire()
		return
	}
	e.sendAll(&head{kind: left})
	e.gone[e.rank] = true
	e.needAll(e.rank)
}

// sendAll sends a packet to all other processes.
func (e *engine) sendAll(h *head) {
	for p := range e.size {
		if p != e.rank && !e.dead[p] {
			e.send(p, h, nil)
		}
	}
}

// expire ends this process for the others.
func (e *engine) expire() {
	if e.expired {
		return
	}
	e.expired = true
	e.sendAll(&head{kind: dead})
	e.bury(e.rank)
}

// needs tells the peer of a request that it is needed, if its program has ended.
func (s *side) needs(r *transport.Request) {
	if r.Peer < 0 || !s.e.gone[s.process(r.Peer)] {
		return
	}
	h := head{kind: need, to: s.context, epoch: r.Epoch}
	if p := s.process(r.Peer); p == s.e.rank {
		s.e.needed(h)
	} else {
		s.e.send(p, &h, nil)
	}
}

// needAll is needs for what waits.
func (e *engine) needAll(process int) {
	for _, s := range e.sides {
		for _, r := range slices.Clone(s.posted) {
			if r.Peer >= 0 && s.process(r.Peer) == process {
				s.needs(r)
			}
		}
		for r := range s.sending {
			if s.process(r.Peer) == process && e.offers[s.sending[r]] != nil {
				s.needs(r)
			}
		}
	}
}

// needed ends this process, unless its side has left the epoch: what needs it
// there will end by itself.
func (e *engine) needed(h head) {
	if s := e.sides[h.to]; s == nil || !h.epoch.Stale(s.Epoch()) {
		e.expire()
	}
}

// fated takes a packet about the end of a process.
func (e *engine) fated(source int, h head) {
	switch h.kind {
	case left:
		e.gone[source] = true
		e.needAll(source)
	case need:
		e.needed(h)
	case dead:
		e.bury(source)
	}
}
