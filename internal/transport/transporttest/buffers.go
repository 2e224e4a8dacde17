package transporttest

import (
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var buffers = []test{
	{"AllocSeesTheLengthAndGetsTheMessage", 1, allocReceives},
	{"WhatTakeGotDoesNotChangeWithTheSendersBuffer", 1, takeCopies},
	{"SharedBytesCanGoToManyRanks", 1, sharedSends},
}

// modes are the ways to send a message, for sendAs.
var modes = []transport.Mode{
	0, transport.Synchronous, transport.Shared, transport.Synchronous | transport.Shared, try,
}

func allocReceives(s *side) {
	for _, w := range ways(sizes, modes...) {
		var asked []int
		var room []byte
		var send, recv *op
		w.inOrder(s, func() {
			send = s.sendAs(w.mode, s.next(), 1, payload(w.size, s.Rank()))
		}, func() {
			recv = s.irecv(transport.Request{Peer: s.previous(), Tag: 1, Alloc: func(n int) []byte {
				asked = append(asked, n)
				room = payload(n+fence, 1)[:n]
				return room
			}})
		})
		recv.found(s.previous(), 1, w.size)
		require.Equal(s, []int{w.size}, asked, "lengths that Alloc was asked for")
		s.same(payload(w.size, s.previous()), room, "message")
		s.same(payload(w.size+fence, 1)[w.size:], room[w.size:w.size+fence], "memory past the buffer")
		send.ok()
	}
}

// takeCopies reuses the buffers of sends that are not Shared.
func takeCopies(s *side) {
	for _, w := range ways(sizes, modes...) {
		buf := payload(w.size, s.Rank())
		send, recv := w.pair(s, w.mode, 1, buf, func() *op {
			return s.irecv(transport.Request{Peer: s.previous(), Tag: 1, Take: true})
		})
		send.ok()
		if w.mode == try || w.mode&transport.Shared == 0 {
			clear(buf)
		}
		recv.found(s.previous(), 1, w.size)
		s.barrier()
		s.same(payload(w.size, s.previous()), recv.Buf, "message taken")
	}
}

// sharedSends sends one array to all ranks, which receive it in every way.
func sharedSends(s *side) {
	for _, w := range ways([]int{0, small, 1000, large}) {
		buf := payload(w.size, s.Rank())
		var sent, taken, copied []*op
		w.inOrder(s, func() {
			for to := range s.Size() {
				for range 2 {
					sent = append(sent, s.isend(transport.Request{Peer: to, Tag: 1, Mode: transport.Shared, Buf: buf}))
				}
			}
		}, func() {
			for from := range s.Size() {
				taken = append(taken, s.irecv(transport.Request{Peer: from, Tag: 1, Take: true}))
				copied = append(copied, s.recv(from, 1, make([]byte, w.size)))
			}
		})
		for from := range s.Size() {
			taken[from].found(from, 1, w.size)
			s.same(payload(w.size, from), taken[from].Buf, "message taken from rank %d", from)
			copied[from].got(from, 1, payload(w.size, from))
			clear(copied[from].Buf) // the rank's own bytes: this changes nothing elsewhere
		}
		allOK(sent)
		s.barrier()
		s.same(payload(w.size, s.Rank()), buf, "shared bytes")
	}
}
