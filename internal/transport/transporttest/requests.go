package transporttest

import (
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var requests = []test{
	{"ARequestThatEndedCanBeUsedAgain", 1, reuseRequest},
	{"CompletedMayStartOperations", 1, relayInCompleted},
	{"CompletedMayReceiveWhatHasArrived", 1, receiveInCompleted},
}

// completer is a function as a Completer.
type completer func(*transport.Request)

func (f completer) Completed(r *transport.Request) { f(r) }

// reuseRequest uses one request for one operation after another, with errors too.
func reuseRequest(s *side) {
	r := new(transport.Request)
	again := func(start func(*transport.Request), fields transport.Request) error {
		o := s.op(fields)
		private := r.Private // belongs to the transport
		*r = o.Request
		r.Private = private
		r.Done = completer(func(*transport.Request) { close(o.done) })
		start(r)
		await(s, o.done)
		return r.Err
	}
	receiveAndCancel := func(r *transport.Request) {
		s.Irecv(r)
		require.True(s, s.Cancel(r))
	}
	for _, size := range []int{small, large} {
		recv := s.recv(s.previous(), 1, make([]byte, size))
		s.barrier()
		require.NoError(s, again(s.Isend, transport.Request{Peer: s.next(), Tag: 1, Buf: payload(size, s.Rank())}))
		recv.got(s.previous(), 1, payload(size, s.previous()))

		send := s.send(s.next(), 2, payload(size, s.Rank()))
		require.NoError(s, again(s.Probe, transport.Request{Peer: s.previous(), Tag: 2}))
		require.Equal(s, size, r.Status.Bytes)
		require.Error(s, again(s.Irecv, transport.Request{Peer: s.previous(), Tag: 2, Buf: make([]byte, 1)}))
		send.ok()

		send = s.send(s.next(), 3, payload(size, s.Rank(), 3))
		require.NoError(s, again(s.Irecv, transport.Request{Peer: s.previous(), Tag: 3, Buf: make([]byte, size)}))
		s.same(payload(size, s.previous(), 3), r.Buf, "message after an error")
		send.ok()

		require.Equal(s, transport.ErrCancelled, again(receiveAndCancel, transport.Request{Peer: s.previous(), Tag: 4}))

		recv = s.recv(s.previous(), 5, make([]byte, size))
		require.NoError(s, again(s.Isend, transport.Request{
			Peer: s.next(), Tag: 5, Mode: transport.Synchronous, Buf: payload(size, s.Rank(), 5),
		}))
		recv.got(s.previous(), 5, payload(size, s.previous(), 5))
	}
}

// relayInCompleted passes a token round repeatedly, while no rank waits.
func relayInCompleted(s *side) {
	hops := 100 // per rank
	end := make(chan struct{})
	var receive func()
	pass := func(r *transport.Request) {
		hops--
		last := hops == 0 // the calls below may change hops
		if !last {
			receive()
		}
		if !last || s.Rank() != 0 { // the token ends where it began
			s.send(s.next(), 1, r.Buf)
		}
		if last {
			close(end)
		}
	}
	receive = func() {
		o := s.op(transport.Request{Peer: s.previous(), Tag: 1, Buf: make([]byte, small)})
		o.Done = completer(pass)
		s.Irecv(&o.Request)
	}
	receive()
	s.barrier()
	if s.Rank() == 0 {
		s.send(s.next(), 1, payload(small, 1)).ok()
	}
	await(s, end)
}

// receiveInCompleted receives each message once the previous one has arrived.
func receiveInCompleted(s *side) {
	const n = 60
	var sent []*op
	var want, got []byte
	for i := range n {
		buf := payload(sizes[1+i%(len(sizes)-1)], i)
		want = append(want, buf[0])
		sent = append(sent, s.send(s.next(), 1, buf))
	}
	s.barrier()
	end := make(chan struct{})
	var receive func()
	receive = func() {
		o := s.op(transport.Request{Peer: s.previous(), Tag: 1, Buf: make([]byte, large)})
		o.Done = completer(func(r *transport.Request) {
			if got = append(got, r.Buf[0]); len(got) == n {
				close(end)
				return
			}
			receive()
		})
		s.Irecv(&o.Request)
	}
	receive()
	await(s, end)
	require.Equal(s, want, got)
	allOK(sent)
}
