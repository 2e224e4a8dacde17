package local

import (
	"cmp"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/board"
	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// Call shows the call on the board.
func (s *Comm) Call(e transport.Epoch, w signature.Word) int {
	number := s.count(e, w)
	// The board has a lock of its own, which is never held together with a side's. So the rank may
	// leave e in between, on another goroutine. Then the board has the call in a place of the old
	// epoch, or has no such place, and halt finds that the epoch is over.
	if e == s.Live() {
		b := &s.comm.board
		b.Lock()
		halts := b.Come(s.rank, e, number, w)
		b.Unlock()
		s.comm.halt(e, halts)
	}
	return number
}

// count counts a call, and records it.
func (s *Comm) count(e transport.Epoch, w signature.Word) int {
	r := &s.process.record
	r.Lock()
	defer r.Unlock()
	number := s.Count(e, w)
	if e == s.Epoch() {
		r.Add(s.comm.id, e.Errors(), number, w)
	}
	return number
}

func (s *Comm) ID() uint64 { return s.comm.id }

func (s *Comm) Record(rank int, calls []record.Call) (all []record.Call, complete, ok bool) {
	r := &s.comm.sides[rank].process.record
	r.Lock()
	defer r.Unlock()
	all, complete = r.Append(calls)
	return all, complete, true
}

func (s *Comm) Clock(seconds *atomic.Uint32) {
	r := &s.process.record
	r.Lock()
	defer r.Unlock()
	r.Record.Clock = seconds
}

// Meet makes the call on the board, which carries it out.
func (s *Comm) Meet(r *transport.Request) (ended bool) {
	e, number := r.Epoch, s.count(r.Epoch, r.Signature)
	// The board and deaths read the number of the call from its tag.
	r.Kind, r.Where, r.Err, r.Tag = transport.Joining, nil, nil, transport.CollectiveTag(number)
	b := &s.comm.board
	b.Lock()
	// A rank that leaves an epoch first changes Live and then takes its requests off the board,
	// with this lock. So r is found there, or finds here that its epoch is over. It is the same
	// with a death: Lose, then Blind, then take. So DeathFor finds the death that has made the
	// board blind.
	if b.IsBlind() || e != s.Live() {
		b.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		r.Err = cmp.Or(s.barred(r), s.DeathFor(r))
		return true
	}
	// From here on another rank may end r, and its Completed may run on another goroutine.
	ended, others, halts := b.Meet(s.rank, number, r)
	// A rank that leaves is noted on the board with this lock. So it is found here, or its leave
	// finds r waiting (isMissed).
	absent, misses := 0, false
	if !ended {
		absent, misses = b.Missing(r)
	}
	// The ends are counted before the lock is free, as in a side with its mu. So Quiesce at one of
	// these ranks waits for them, although the requests are on no list any more (P4).
	s.comm.begin(others)
	b.Unlock()
	// Ends and halts are told without locks, because what is told may begin operations.
	s.comm.tell(others, nil)
	s.comm.halt(e, halts)
	// This may end the process of the absent rank, and with it r, which must be on the board by
	// then.
	if misses {
		s.comm.sides[absent].owes(s)
	}
	return ended
}

// begin and tell are those of the sides that requests which the board has ended belong to. The
// caller of begin holds the board's lock, and the caller of tell holds none.
func (c *communicator) begin(ended *transport.Request) {
	for r := ended; r != nil; r = r.Next {
		c.sides[board.RankOf(r)].begin()
	}
}

func (c *communicator) tell(ended *transport.Request, err error) {
	for r := range match.List(ended) {
		r.Err = err
		c.sides[board.RankOf(r)].tell(r)
	}
}

// take takes requests of this rank off the board, and ends them. The caller has made sure before
// that no such request comes to the board any more: by a change of Live, or by Blind.
func (s *Comm) take(which func(*transport.Request) bool, cause error) {
	b := &s.comm.board
	b.Lock()
	// Taking a request breaks its place, so no other rank reads or writes its buffers from here on
	// (F4).
	taken := b.Take(s.rank, which)
	s.comm.begin(taken)
	b.Unlock()
	s.comm.tell(taken, cause)
}

func (s *Comm) Called() (number int, w signature.Word) {
	s.process.record.Lock()
	defer s.process.record.Unlock()
	return s.Matcher.Called()
}

func (s *Comm) Mismatch() error {
	if !s.IsHalted() {
		return nil
	}
	// The epoch may have ended since. Then the Matcher returns nil.
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Matcher.Mismatch()
}

// halt ends the part of ranks in epoch e, unless they have left that.
func (c *communicator) halt(e transport.Epoch, halts []board.Halt) {
	for _, h := range halts {
		s := &c.sides[h.Rank]
		s.endAll(func() *transport.Request {
			// It is asked with the side's locks. A rank that has left e on another goroutine must
			// not be halted in its new epoch (M3).
			if s.Epoch() != e {
				return nil
			}
			return s.Halt(h.Cause)
		}, h.Cause)
	}
}
