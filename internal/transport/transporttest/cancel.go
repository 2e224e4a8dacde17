package transporttest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var cancels = []test{
	{"ACancelledReceiveLeavesTheMessage", 1, cancelReceive},
	{"ACancelledReceiveLeavesTheOthersInOrder", 1, cancelAmongReceives},
	{"AProbeCanBeCancelled", 1, cancelProbe},
	{"ACancelledSendIsNeverReceived", 1, cancelSend},
	{"ACancelledSendLeavesTheOthersInOrder", 1, cancelAmongSends},
	{"WhatHasEndedCannotBeCancelled", 1, cancelEnded},
}

// cancelled cancels a request that cannot have been matched.
func (o *op) cancelled() {
	o.s.Helper()
	require.True(o.s, o.s.Cancel(&o.Request), "%v could not be cancelled", o)
	o.fails(transport.ErrCancelled)
	require.False(o.s, o.s.Cancel(&o.Request), "%v was cancelled twice", o)
}

func cancelReceive(s *side) {
	for _, size := range []int{small, large} {
		buf := payload(size, 1)
		first := s.recv(s.previous(), 2, buf)
		wildcard := s.irecv(transport.Request{
			Peer: transport.AnySource, Tag: transport.AnyTag,
			Alloc: func(int) []byte { s.Errorf("Alloc of a cancelled receive"); return buf },
		})
		s.barrier()
		first.cancelled()
		wildcard.cancelled()
		s.same(payload(size, 1), buf, "buffer of a cancelled receive")
		s.barrier()
		send := s.send(s.next(), 2, payload(size, 2))
		s.recv(s.previous(), 2, make([]byte, size)).got(s.previous(), 2, payload(size, 2))
		send.ok()
		s.same(payload(size, 1), buf, "buffer of a cancelled receive")
	}
}

func cancelAmongReceives(s *side) {
	const n = 5
	for victim := range n {
		var received []*op
		for range n {
			received = append(received, s.recv(s.previous(), 2, make([]byte, small)))
		}
		received[victim].cancelled()
		received = append(received[:victim], received[victim+1:]...)
		s.barrier()
		for i := range received {
			s.send(s.next(), 2, payload(small, i)).ok()
		}
		for i, o := range received {
			o.got(s.previous(), 2, payload(small, i))
		}
		s.barrier()
	}
}

func cancelProbe(s *side) {
	probe := s.probe(s.previous(), 2)
	other := s.probe(s.previous(), 2)
	s.barrier()
	probe.cancelled()
	other.pending()
	s.barrier()
	s.send(s.next(), 2, nil).ok()
	other.found(s.previous(), 2, 0)
	s.recv(s.previous(), 2, nil).found(s.previous(), 2, 0)
}

// cancelSend cancels sends. Those of short messages may be done already.
func cancelSend(s *side) {
	for _, size := range []int{0, small, large} {
		for _, mode := range []transport.Mode{0, transport.Synchronous} {
			buf := payload(size, 1)
			send := s.isend(transport.Request{Peer: s.next(), Tag: 2, Mode: mode, Buf: buf})
			s.probe(s.previous(), 2).found(s.previous(), 2, size)
			s.barrier()
			cancelled := s.Cancel(&send.Request)
			if cancelled {
				send.fails(transport.ErrCancelled)
				require.False(s, s.Cancel(&send.Request), "cancelled twice")
				clear(buf)
			} else {
				require.NotEqual(s, transport.Synchronous, mode, "%v could not be cancelled", send)
			}
			s.barrier()
			if !cancelled { // then the left rank's send, which is the same, was not cancelled either
				s.recv(s.previous(), 2, make([]byte, size)).got(s.previous(), 2, payload(size, 1))
				send.ok()
			}
			s.barrier()
			next := s.send(s.next(), 2, payload(small, 2))
			s.probe(s.previous(), 2).found(s.previous(), 2, small)
			s.recv(s.previous(), 2, make([]byte, small)).got(s.previous(), 2, payload(small, 2))
			next.ok()
			s.barrier()
		}
	}
}

func cancelAmongSends(s *side) {
	const n = 5
	for _, size := range []int{small, large} {
		for victim := range n {
			var sent []*op
			for i := range n {
				sent = append(sent, s.ssend(s.next(), 2, payload(size, i)))
			}
			sent[victim].cancelled()
			s.barrier()
			for i := range n {
				if i != victim {
					s.recv(s.previous(), 2, make([]byte, size)).got(s.previous(), 2, payload(size, i))
					sent[i].ok()
				}
			}
			s.barrier()
		}
	}
}

func cancelEnded(s *side) {
	send := s.send(s.next(), 2, payload(large, 1))
	probe := s.probe(s.previous(), 2)
	probe.found(s.previous(), 2, large)
	recv := s.recv(s.previous(), 2, make([]byte, large))
	recv.got(s.previous(), 2, payload(large, 1))
	send.ok()
	stale := s.recv(s.previous(), 3, nil)
	cause := errors.New("an error")
	s.Advance(0, cause)
	stale.fails(cause)
	for _, o := range []*op{send, probe, recv, stale} {
		err := o.Err
		require.False(s, s.Cancel(&o.Request), "%v", o)
		require.Equal(s, err, o.Err)
	}
}
