package sim

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Call counts a collective call.
func (s *side) Call(e transport.Epoch, w signature.Word) int {
	number, odd := s.Matcher.Call(e, w)
	if odd != nil {
		s.halt(odd)
	}
	return number
}

// halt ends the rank's participation in the epoch.
func (s *side) halt(cause *transport.MismatchError) {
	if !s.p.dead {
		s.endAll(s.Halt(cause), cause, everything)
	}
}
