package local

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

func (s *Comm) Call(e transport.Epoch, w signature.Word) int {
	s.mu.Lock()
	number := s.Count(e, w)
	s.mu.Unlock()
	if e == s.Live() {
		s.comm.came(s.rank, e, number, w)
	}
	return number
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

// halt ends the rank's part in epoch e, unless it has left that.
func (s *Comm) halt(e transport.Epoch, cause *transport.MismatchError) {
	s.endAll(func() *transport.Request {
		if s.Epoch() != e {
			return nil
		}
		return s.Halt(cause)
	}, cause)
}
