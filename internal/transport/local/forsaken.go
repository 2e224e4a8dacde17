package local

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A rank whose program has ended (which has left) may leave others waiting forever. If processes
// are mortal, a request that names such a rank makes that rank expire (see awaits). The functions
// in this file find the other requests that no rank will complete. They look at them when a program
// begins to wait, and when a rank leaves. On one communicator, a rank that has released it is like
// one that has left, but it never expires.
//
// While no member has left, released the communicator or died, this costs a Wait one atomic load. A
// rank that leaves looks at the sides of a communicator only if a request names it, or if at most
// one member has done none of these. Otherwise n ranks that leave would look at n sides each.

// Look ends the requests that this rank waits for in vain.
func (s *Comm) Look() {
	if s.comm.absent.Load() > 0 {
		s.endForsaken()
	}
}

// Release is leave for one communicator.
func (s *Comm) Release() {
	if s.released.Swap(true) {
		return
	}
	s.process.busy.whenIdle(func() {
		s.comm.released.Store(true)
		s.gone.Store(true)
		s.leaves()
		s.comm.absent.Add(1)
		s.comm.endForsaken(s.process.awaited.Load() > 0 || s.isMissed()) // read last: see leave
	})
}

// endForsaken is that of all sides. It looks at them only if named says that a request needs a
// certain rank, or if one from AnySource may need any.
func (c *communicator) endForsaken(named bool) {
	if named || int(c.absent.Load()) >= len(c.sides)-1 {
		for i := range c.sides {
			c.sides[i].endForsaken()
		}
	}
}

// endForsaken ends the requests that this rank waits for if only ranks that have left could
// complete them. If processes are mortal, it makes a rank expire that a receive from AnySource
// needs. It ends the receive when all others have died and the program has acknowledged their
// deaths.
func (s *Comm) endForsaken() {
	if !s.comm.mortal || s.comm.released.Load() {
		s.endLeft(s.forsaken)
		s.endMissing()
	}
	if s.comm.mortal {
		if hope := s.lastHope(); hope != nil {
			hope.expire()
		}
		s.endIf(func(r *transport.Request) bool {
			return s.IsAlone(s.rank, len(s.comm.sides)) && r.Peer == transport.AnySource && r.IsAwaited() && r.HasAcknowledged()
		}, &transport.DeadError{Rank: transport.AnySource})
	}
}

// endMissing ends the calls on the board that wait for ranks that have left.
func (s *Comm) endMissing() {
	b := &s.comm.board
	b.Lock()
	// A rank that has left but is not silent yet may have sent an error, and the calls then end
	// with that error instead. When it is silent, leave looks here again.
	taken, absent := b.Forsake(s.rank, func(rank int) bool { return s.comm.sides[rank].isGone() })
	s.comm.begin(taken)
	b.Unlock()
	s.comm.tell(taken, s.leftError(absent))
}

// endLeft ends the requests for which which returns true.
func (s *Comm) endLeft(which func(*transport.Request) bool) {
	s.mu.Lock()
	ended := s.TakeIf(which)
	s.mu.Unlock()
	s.served(ended)
	for r := range match.List(ended) {
		end(r, s.leftError(r.Peer))
	}
	// Which is called with the mu of the side where the message waits. It must not be called after
	// a receive has taken the send, whose owner may use it again.
	for _, m := range s.listed() {
		if r := s.comm.sides[m.dest].withdrawIf(m, which); r != nil {
			s.unlist(m)
			end(r, s.leftError(r.Peer))
		}
	}
}

// leftError returns the error of a request of this rank that needs another one.
func (s *Comm) leftError(rank int) error {
	return &transport.LeftError{Rank: rank, Released: s.hasGone(rank)}
}

// hasGone says whether another rank has released the communicator or, if rank is AnySource, whether
// any other has.
func (s *Comm) hasGone(rank int) bool {
	sides := s.comm.sides
	if rank >= 0 {
		return sides[rank].gone.Load()
	}
	for i := range sides {
		if i != s.rank && sides[i].gone.Load() {
			return true
		}
	}
	return false
}

// lastHope returns a process that has left and must expire because of a receive from AnySource.
func (s *Comm) lastHope() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.Posted.All() {
		if r.Peer == transport.AnySource && s.isVain(r) && !s.forsaken(r) {
			for i := range s.comm.sides {
				if q := s.comm.sides[i].process; i != s.rank && !q.dead.Load() {
					return q
				}
			}
		}
	}
	return nil
}

// forsaken says whether r ends with a LeftError: all ranks that could complete it have left, and it
// belongs to a collective call or the program waits for it. If processes are mortal, one of the
// ranks must have released the communicator.
func (s *Comm) forsaken(r *transport.Request) bool {
	if r.Peer >= 0 {
		q := &s.comm.sides[r.Peer]
		return r.Peer != s.rank && q.isGone() && q.isAbsent(r.Epoch) && !q.continues(r) &&
			(transport.IsCollective(r.Tag) || r.IsAwaited())
	}
	return s.isVain(r) && (!s.comm.mortal || s.hasGone(transport.AnySource))
}

// isVain says whether the program waits for r, which is from AnySource, and all others are absent.
func (s *Comm) isVain(r *transport.Request) bool {
	sides, e := s.comm.sides, r.Epoch
	for i := range sides {
		if i != s.rank && !sides[i].isAbsent(e) {
			return false
		}
	}
	return len(sides) > 1 && r.IsAwaited()
}

// isAbsent says whether the side's rank has left, released the communicator or died without leaving
// epoch e. Requests of an epoch that it has left end with that epoch.
func (s *Comm) isAbsent(e transport.Epoch) bool {
	return (s.gone.Load() || s.process.silent.Load() || s.process.dead.Load()) && !e.Stale(s.Epoch())
}

// isGone says whether requests that need the side's rank end with a LeftError.
func (s *Comm) isGone() bool { return s.gone.Load() || !s.comm.mortal && s.process.silent.Load() }

// continues says whether r belongs to a collective call that the side's rank has made, and in which
// it may still have steps to do.
func (s *Comm) continues(r *transport.Request) bool {
	e, made := s.called()
	return !s.process.silent.Load() && transport.IsCollective(r.Tag) && r.Epoch == e && transport.CollectiveNumber(r.Tag) <= made
}
