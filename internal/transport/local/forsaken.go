package local

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A rank whose program has ended (which has left) may leave others waiting forever. If processes
// are mortal, a request that names such a rank makes that rank expire (see awaits). The functions
// in this file find the other requests that no rank will complete. They look at them when a program
// begins to wait, and when a rank leaves.
//
// While no member has left or died, this costs a Wait one atomic load. A rank that leaves looks at
// the sides of a communicator only if a request names it, or if at most one member has not left or
// died. Otherwise n ranks that leave would look at n sides each.

// Look ends the requests that this rank waits for in vain.
func (s *Comm) Look() {
	if s.comm.absent.Load() > 0 {
		s.endForsaken()
	}
}

// endForsaken ends the requests that this rank waits for if only ranks that have left could
// complete them. If processes are mortal, it makes a rank expire that a receive from AnySource
// needs. It ends the receive when all others have died and the program has acknowledged their
// deaths.
func (s *Comm) endForsaken() {
	if s.comm.mortal {
		if hope := s.lastHope(); hope != nil {
			hope.expire()
		}
		s.endIf(func(r *transport.Request) bool {
			return s.IsAlone(s.rank, len(s.comm.sides)) && r.Peer == transport.AnySource && r.IsAwaited() && r.HasAcknowledged()
		}, &transport.DeadError{Rank: transport.AnySource})
		return
	}
	s.endLeft(s.forsaken)
	s.endMissing()
}

// endMissing ends the calls on the board that wait for ranks that have left.
func (s *Comm) endMissing() {
	b := &s.comm.board
	b.Lock()
	// A rank that has left but is not silent yet may have sent an error, and the calls then end
	// with that error instead. When it is silent, leave looks here again.
	taken, absent := b.Forsake(s.rank, func(rank int) bool { return s.comm.sides[rank].process.silent.Load() })
	s.comm.begin(taken)
	b.Unlock()
	s.comm.tell(taken, &transport.LeftError{Rank: absent})
}

// endLeft ends the requests for which which returns true.
func (s *Comm) endLeft(which func(*transport.Request) bool) {
	s.mu.Lock()
	ended := s.TakeIf(which)
	s.mu.Unlock()
	s.served(ended)
	for r := range match.List(ended) {
		end(r, &transport.LeftError{Rank: r.Peer})
	}
	// Which is called with the mu of the side where the message waits. It must not be called after
	// a receive has taken the send, whose owner may use it again.
	for _, m := range s.listed() {
		if r := s.comm.sides[m.dest].withdrawIf(m, which); r != nil {
			s.unlist(m)
			end(r, &transport.LeftError{Rank: r.Peer})
		}
	}
}

// lastHope returns a process that has left and must expire because of a receive from AnySource.
func (s *Comm) lastHope() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.Posted.All() {
		if r.Peer == transport.AnySource && s.forsaken(r) {
			for i := range s.comm.sides {
				if q := s.comm.sides[i].process; i != s.rank && !q.dead.Load() {
					return q
				}
			}
		}
	}
	return nil
}

// forsaken says whether all ranks that could complete r have left, and r belongs to a collective
// call or the program waits for it.
func (s *Comm) forsaken(r *transport.Request) bool {
	sides, e := s.comm.sides, r.Epoch
	if r.Peer >= 0 {
		return r.Peer != s.rank && sides[r.Peer].isAbsent(e) && (transport.IsCollective(r.Tag) || r.IsAwaited())
	}
	for i := range sides {
		if i != s.rank && !sides[i].isAbsent(e) {
			return false
		}
	}
	return len(sides) > 1 && r.IsAwaited()
}

// isAbsent says whether the side's rank has left or died without leaving epoch e. Requests of an
// epoch that it has left end with that epoch.
func (s *Comm) isAbsent(e transport.Epoch) bool {
	return (s.process.silent.Load() || s.process.dead.Load()) && !e.Stale(s.Epoch())
}
