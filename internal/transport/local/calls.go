package local

import (
	"github.com/mpicx/go-mpicx/internal/board"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// Call shows the call on the board.
func (s *Comm) Call(e transport.Epoch, w signature.Word) int {
	s.mu.Lock()
	number := s.Count(e, w)
	s.mu.Unlock()
	if e == s.Live() {
		b := &s.comm.board
		b.Lock()
		halts := b.Come(s.rank, e, number, w)
		b.Unlock()
		s.comm.halt(e, halts)
	}
	return number
}

// Meet makes the call on the board, which carries it out.
func (s *Comm) Meet(r *transport.Request) (ended bool) {
	r.Kind, r.Where = transport.Joining, nil
	s.mu.Lock()
	number := s.Count(r.Epoch, r.Signature)
	r.Err = s.barred(r)
	s.mu.Unlock()
	r.Tag = transport.CollectiveTag(number)
	if r.Err != nil {
		return true
	}
	e, b := r.Epoch, &s.comm.board
	b.Lock()
	if b.Blind || e != s.Live() {
		b.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Err = s.barred(r); r.Err == nil {
			r.Err = s.DeathFor(r)
		}
		return true
	}
	ended, others, halts := b.Meet(s.rank, number, r)
	absent, misses := -1, false
	if !ended {
		absent, misses = b.Missing(r)
	}
	s.comm.begin(others)
	b.Unlock()
	s.comm.tell(others, nil)
	s.comm.halt(e, halts)
	if misses {
		s.comm.sides[absent].process.owes(s)
	}
	return ended
}

// begin and tell are those of the sides that requests which the board has ended belong to.
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

// take takes requests of this rank off the board, and ends them.
func (s *Comm) take(which func(*transport.Request) bool, cause error) {
	b := &s.comm.board
	b.Lock()
	taken := b.Take(s.rank, which)
	s.comm.begin(taken)
	b.Unlock()
	s.comm.tell(taken, cause)
}

func (s *Comm) Called() (number int, w signature.Word) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Matcher.Called()
}

func (s *Comm) Mismatch() error {
	if !s.IsHalted() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Matcher.Mismatch()
}

// halt ends the part of ranks in epoch e, unless they have left that.
func (c *communicator) halt(e transport.Epoch, halts []board.Halt) {
	for _, h := range halts {
		s := &c.sides[h.Rank]
		s.endAll(func() *transport.Request {
			if s.Epoch() != e {
				return nil
			}
			return s.Halt(h.Cause)
		}, h.Cause)
	}
}
