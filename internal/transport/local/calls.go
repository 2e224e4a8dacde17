package local

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

func (s *Comm) Call(e transport.Epoch, w signature.Word) int {
	s.mu.Lock()
	number, odd := s.Matcher.Call(e, w)
	s.mu.Unlock()
	if odd != nil {
		s.halt(odd)
	}
	s.comm.changed()
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

// halt ends the rank's part in the epoch.
func (s *Comm) halt(cause *transport.MismatchError) {
	s.endAll(func() *transport.Request { return s.Halt(cause) }, cause)
}
