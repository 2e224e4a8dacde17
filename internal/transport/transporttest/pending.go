package transporttest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var pending = []test{
	{"PendingListsWhatWaits", 1, listPending},
}

// areListed checks that Pending lists these requests and no others.
func areListed(s *side, want ...*op) {
	s.Helper()
	got := transport.Pending(s)
	require.Len(s, got, len(want))
	for _, o := range want {
		require.True(s, slices.Contains(got, &o.Request), "%v is not listed", o)
	}
}

func listPending(s *side) {
	areListed(s)
	recv := s.recv(s.previous(), 1, make([]byte, small))
	wildcard := s.irecv(transport.Request{Peer: transport.AnySource, Tag: 2, Take: true})
	probe := s.probe(s.previous(), 3)
	ssend := s.ssend(s.next(), 4, payload(large, 4))
	self := s.ssend(s.Rank(), 5, nil)
	areListed(s, recv, wildcard, probe, ssend, self)
	require.Equal(s, []transport.Kind{transport.Receiving, transport.Receiving, transport.Probing, transport.Sending, transport.Sending},
		[]transport.Kind{recv.Kind, wildcard.Kind, probe.Kind, ssend.Kind, self.Kind})
	s.barrier()

	probe.cancelled()
	areListed(s, recv, wildcard, ssend, self)
	s.recv(s.Rank(), 5, nil).ok()
	self.ok()
	areListed(s, recv, wildcard, ssend)
	s.barrier()

	s.send(s.next(), 1, payload(small, 1)).ok()
	recv.ok()
	areListed(s, wildcard, ssend)
	s.barrier()

	s.recv(s.previous(), 4, make([]byte, large)).ok()
	ssend.ok()
	s.send(s.next(), 2, nil).ok()
	wildcard.ok()
	areListed(s)
}
