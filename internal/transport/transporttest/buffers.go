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
	for _, mode := range modes {
		for _, size := range sizes {
			for _, m := range meetings {
				var asked []int
				var room []byte
				var send, recv *op
				m.of(s, func() {
					send = s.sendAs(mode, s.right(), 1, payload(size, s.Rank()))
				}, func() {
					recv = s.irecv(transport.Request{Peer: s.left(), Tag: 1, Alloc: func(n int) []byte {
						asked = append(asked, n)
						room = payload(n+fence, 1)[:n]
						return room
					}})
				})
				recv.found(s.left(), 1, size)
				require.Equal(s, []int{size}, asked, "lengths that Alloc was asked for")
				s.same(payload(size, s.left()), room, "message")
				s.same(payload(size+fence, 1)[size:], room[size:size+fence], "memory past the buffer")
				send.ok()
			}
		}
	}
}

// takeCopies reuses the buffers of sends that are not Shared.
func takeCopies(s *side) {
	for _, mode := range modes {
		for _, size := range sizes {
			for _, m := range meetings {
				buf := payload(size, s.Rank())
				send, recv := m.pair(s, mode, 1, buf, func() *op {
					return s.irecv(transport.Request{Peer: s.left(), Tag: 1, Take: true})
				})
				send.ok()
				if mode == try || mode&transport.Shared == 0 {
					clear(buf)
				}
				recv.found(s.left(), 1, size)
				s.barrier()
				s.same(payload(size, s.left()), recv.Buf, "message taken")
			}
		}
	}
}

// sharedSends sends one array to all ranks, which receive it in every way.
func sharedSends(s *side) {
	for _, size := range []int{0, small, 1000, large} {
		for _, m := range meetings {
			buf := payload(size, s.Rank())
			var sent, taken, copied []*op
			m.of(s, func() {
				for to := range s.Size() {
					for range 2 {
						sent = append(sent, s.isend(transport.Request{Peer: to, Tag: 1, Mode: transport.Shared, Buf: buf}))
					}
				}
			}, func() {
				for from := range s.Size() {
					taken = append(taken, s.irecv(transport.Request{Peer: from, Tag: 1, Take: true}))
					copied = append(copied, s.recv(from, 1, make([]byte, size)))
				}
			})
			for from := range s.Size() {
				taken[from].found(from, 1, size)
				s.same(payload(size, from), taken[from].Buf, "message taken from rank %d", from)
				copied[from].got(from, 1, payload(size, from))
				clear(copied[from].Buf) // the rank's own bytes: this changes nothing elsewhere
			}
			allOK(sent)
			s.barrier()
			s.same(payload(size, s.Rank()), buf, "shared bytes")
		}
	}
}
