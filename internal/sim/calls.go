package sim

import (
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/record"
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

// No rank of a simulation keeps a record.

func (s *side) ID() uint64 { return uint64(s.comm.id) }

func (s *side) Record(_ int, calls []record.Call) (all []record.Call, complete, ok bool) {
	return calls, false, false
}

func (s *side) Clock(*atomic.Uint32) {}

// halt ends the rank's participation in the epoch.
func (s *side) halt(cause *transport.MismatchError) {
	if !s.p.dead {
		s.endAll(s.Halt(cause), cause, everything)
	}
}
