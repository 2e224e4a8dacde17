package transporttest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Design rule F5.
var truncation = []test{
	{"AMessageLongerThanTheBufferIsAnError", 1, truncate},
	{"ATruncatedMessageIsGone", 1, truncateThenReceive},
}

// The buffer lies within a larger array.
const fence = 64

func truncate(s *side) {
	for _, c := range []struct{ size, room int }{
		{1, 0}, {small, small - 1}, {1000, 64}, {5000, 4096}, {large, 0}, {large, small}, {large, large - 1},
	} {
		for i, w := range ways([]int{c.size}, 0, transport.Synchronous, transport.Shared, try) {
			array, from := payload(c.room+2*fence, 9), []int{s.previous(), transport.AnySource}[i%2]
			send, recv := w.pair(s, w.mode, 4, payload(c.size, s.Rank()), func() *op {
				return s.recv(from, 4, array[fence:fence+c.room])
			})
			recv.truncated(transport.Status{Source: s.previous(), Tag: 4, Bytes: c.size}, c.room)
			send.ok() // the sender gets no error
			s.barrier()
			want := payload(c.room+2*fence, 9)
			s.same(want[:fence], array[:fence], "memory before the buffer")
			s.same(want[fence+c.room:], array[fence+c.room:], "memory past the buffer")
		}
	}
}

// truncated waits and checks the error.
func (o *op) truncated(status transport.Status, room int) {
	o.s.Helper()
	err, ok := errors.AsType[*transport.TruncateError](o.wait())
	require.True(o.s, ok, "%v ended with %v", o, o.Err)
	require.Equal(o.s, transport.TruncateError{Status: status, Room: room}, *err)
	require.Equal(o.s, status, o.Status)
}

func truncateThenReceive(s *side) {
	for _, w := range ways([]int{1000, large}) {
		var sent, received []*op
		w.inOrder(s, func() {
			for i := range 4 {
				sent = append(sent, s.send(s.next(), 4, payload(w.size, s.Rank(), i)))
			}
		}, func() {
			for _, room := range []int{w.size, 10, 0, w.size} {
				received = append(received, s.recv(s.previous(), 4, make([]byte, room)))
			}
		})
		received[0].got(s.previous(), 4, payload(w.size, s.previous(), 0))
		received[1].truncated(transport.Status{Source: s.previous(), Tag: 4, Bytes: w.size}, 10)
		received[2].truncated(transport.Status{Source: s.previous(), Tag: 4, Bytes: w.size}, 0)
		received[3].got(s.previous(), 4, payload(w.size, s.previous(), 3))
		allOK(sent)
	}
}
