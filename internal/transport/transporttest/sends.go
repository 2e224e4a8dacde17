package transporttest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var sends = []test{
	{"ASmallSendNeedsNoReceive", 1, smallSendsEndAtOnce},
	{"TrySendSendsAtOnceOrNotAtAll", 1, trySends},
	{"ASynchronousSendEndsOnlyWhenReceived", 1, synchronousSendsWait},
	{"AMessageMayHaveAnySize", 1, messagesOfAllSizes},
	{"AMessageMayHaveMegabytes", 1, hugeMessages},
	{"ARankCanSendToItself", 1, selfMessages},
	{"TheBufferOfASendThatEndedMayBeChanged", 1, sendersReuseBuffers},
	{"TheBufferOfAReceiveThatEndedHasTheMessage", 1, receiversUseBuffers},
}

func smallSendsEndAtOnce(s *side) {
	for i := range 20 {
		s.send(s.next(), i, payload(small, s.Rank(), i)).ok()
	}
	s.send(s.next(), 20, nil).ok()
	s.barrier()
	for i := range 20 {
		s.recv(s.previous(), i, make([]byte, small)).got(s.previous(), i, payload(small, s.previous(), i))
	}
	s.recv(s.previous(), 20, nil).found(s.previous(), 20, 0)
}

func trySends(s *side) {
	for _, size := range sizes {
		for _, m := range meetings {
			var sent bool
			var recv *op
			buf := payload(size, s.Rank())
			m.inOrder(s, func() {
				sent = s.TrySend(s.next(), 1, s.Epoch(), 0, buf)
				if sent {
					clear(buf)
				}
			}, func() {
				recv = s.recv(s.previous(), 1, make([]byte, size))
			})
			if !sent {
				s.send(s.next(), 1, buf).ok()
			}
			recv.got(s.previous(), 1, payload(size, s.previous()))
		}

		// If TrySend has not sent, not even a probe finds a message.
		probe := s.probe(s.previous(), 1)
		s.barrier()
		sent := []byte{0}
		if s.TrySend(s.next(), 1, s.Epoch(), 0, payload(size, s.Rank())) {
			sent[0] = 1
		}
		s.send(s.next(), noteTag, sent).ok()
		lefts := []byte{0}
		s.recv(s.previous(), noteTag, lefts).ok()
		s.barrier()
		if lefts[0] == 0 {
			probe.pending()
			probe.cancelled()
		} else {
			probe.found(s.previous(), 1, size)
			s.recv(s.previous(), 1, make([]byte, size)).got(s.previous(), 1, payload(size, s.previous()))
		}
	}
}

func synchronousSendsWait(s *side) {
	for _, mode := range []transport.Mode{transport.Synchronous, transport.Synchronous | transport.Shared} {
		for _, size := range []int{0, small, 1000, large} {
			send := s.isend(transport.Request{Peer: s.next(), Tag: 2, Mode: mode, Buf: payload(size, s.Rank())})
			s.probe(s.previous(), 2).found(s.previous(), 2, size) // has arrived, which does not complete the send
			mismatch := s.recv(s.previous(), 3, nil)
			s.barrier()
			send.pending()
			s.barrier() // all ranks have looked
			s.recv(s.previous(), 2, make([]byte, size)).got(s.previous(), 2, payload(size, s.previous()))
			send.ok()
			s.ssend(s.next(), 3, nil).ok()
			mismatch.ok()
		}
	}
}

func messagesOfAllSizes(s *side) {
	for _, w := range ways(sizes, 0, transport.Synchronous, transport.Shared) {
		var first, second, exact, roomy *op
		into := payload(w.size+small, 1)
		w.inOrder(s, func() {
			first = s.isend(transport.Request{Peer: s.next(), Tag: 1, Mode: w.mode, Buf: payload(w.size, s.Rank())})
			second = s.isend(transport.Request{Peer: s.next(), Tag: 1, Mode: w.mode, Buf: payload(w.size, s.Rank(), 2)})
		}, func() {
			exact = s.recv(s.previous(), 1, make([]byte, w.size))
			roomy = s.recv(s.previous(), 1, into)
		})
		exact.got(s.previous(), 1, payload(w.size, s.previous()))
		roomy.got(s.previous(), 1, payload(w.size, s.previous(), 2))
		s.same(payload(w.size+small, 1)[w.size:], into[w.size:], "buffer behind the message")
		first.ok()
		second.ok()
	}
}

func hugeMessages(s *side) {
	for _, w := range ways([]int{1 << 20, 3<<20 + 5}) {
		send, recv := w.pair(s, 0, 1, payload(w.size, s.Rank()), func() *op { return s.recv(s.previous(), 1, make([]byte, w.size)) })
		recv.got(s.previous(), 1, payload(w.size, s.previous()))
		send.ok()
	}
}

func selfMessages(s *side) {
	me := s.Rank()
	for _, from := range []int{me, transport.AnySource} {
		for _, x := range mixture {
			send := s.sendAs(x.mode, me, 3, payload(x.size, me))
			s.recv(from, 3, make([]byte, x.size)).got(me, 3, payload(x.size, me))
			send.ok()

			recv := s.recv(from, 3, make([]byte, x.size))
			s.sendAs(x.mode, me, 3, payload(x.size, me)).ok()
			recv.got(me, 3, payload(x.size, me))
		}
	}
}

// sendersReuseBuffers overwrites each buffer in Completed, when its send ends. That may be long
// before the message is received.
func sendersReuseBuffers(s *side) {
	for _, w := range ways(sizes, 0, transport.Synchronous) {
		buf := payload(w.size, s.Rank())
		send := s.op(transport.Request{Peer: s.next(), Tag: 1, Mode: w.mode, Buf: buf})
		send.Done = completer(func(r *transport.Request) {
			clear(buf)
			send.Completed(r)
		})
		var recv *op
		w.inOrder(s, func() {
			s.Isend(&send.Request)
		}, func() {
			recv = s.recv(s.previous(), 1, make([]byte, w.size))
		})
		send.ok()
		recv.got(s.previous(), 1, payload(w.size, s.previous()))
	}
}

// receiversUseBuffers reads each message in Completed, when its receive ends.
func receiversUseBuffers(s *side) {
	for _, w := range ways(sizes, modes...) {
		var got []byte
		recv := s.op(transport.Request{Peer: s.previous(), Tag: 1, Buf: make([]byte, w.size)})
		recv.Done = completer(func(r *transport.Request) {
			got = slices.Clone(r.Buf)
			clear(r.Buf)
			recv.Completed(r)
		})
		var send *op
		w.inOrder(s, func() {
			send = s.sendAs(w.mode, s.next(), 1, payload(w.size, s.Rank()))
		}, func() {
			s.Irecv(&recv.Request)
		})
		recv.found(s.previous(), 1, w.size)
		s.same(payload(w.size, s.previous()), got, "message, as it was when the receive ended")
		send.ok()
		require.Equal(s, make([]byte, w.size), recv.Buf, "buffer, used for something else since")
	}
}
