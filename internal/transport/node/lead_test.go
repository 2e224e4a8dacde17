package node

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A process that is far ahead of another waits until that one receives. All arrives in order.
func TestFarAhead(t *testing.T) {
	before := mostLead
	t.Cleanup(func() { mostLead = before })
	mostLead = lead{1000, 1 << 20}
	for _, test := range []struct{ tag, length, most int }{
		{transport.CollectiveTag(1), 8, mostLeadInCalls.messages},
		{transport.CollectiveTag(1), 8000, (mostLeadInCalls.bytes + 7999) / 8000},
		{2, 8, mostLead.messages},
	} {
		c, _ := pair(false)
		sent := 0
		buf := func() []byte {
			b := make([]byte, test.length)
			binary.LittleEndian.PutUint64(b, uint64(sent))
			sent++
			return b
		}
		for range 3 {
			for range test.most {
				require.True(t, c[0].TrySend(1, test.tag, 0, 0, buf()))
			}
			last := buf()
			require.False(t, c[0].TrySend(1, test.tag, 0, 0, last))
			s := (&request{Request: transport.Request{Peer: 1, Tag: test.tag, Buf: last}}).start(c[0].Isend)
			settle(c[:]...)
			require.False(t, s.ended())
			for i := sent - test.most - 1; i < sent; i++ {
				r := (&request{Request: transport.Request{Peer: 0, Tag: test.tag, Buf: make([]byte, test.length)}}).start(c[1].Irecv)
				settle(c[:]...)
				require.True(t, r.ended())
				require.NoError(t, r.Err)
				require.EqualValues(t, i, binary.LittleEndian.Uint64(r.Buf))
			}
			require.True(t, s.ended())
			require.NoError(t, s.Err)
		}
	}
}

// Two processes that send to each other before they receive never wait, as long as they do receive.
func TestCredit(t *testing.T) {
	before := mostLead
	t.Cleanup(func() { mostLead = before })
	for _, most := range []lead{{100, 1 << 20}, {1 << 16, 80_000}} {
		mostLead = most
		c, _ := pair(false)
		for i := range 1000 {
			for me := range c {
				require.True(t, c[me].TrySend(1-me, 2, 0, 0, make([]byte, 800)), "message %d of process %d", i, me)
			}
			settle(c[:]...)
			for me := range c {
				r := (&request{Request: transport.Request{Peer: 1 - me, Tag: 2, Buf: make([]byte, 800)}}).start(c[me].Irecv)
				require.True(t, r.ended())
			}
			settle(c[:]...)
		}
		for range min(most.messages, most.bytes/800) / 2 { // and still not ahead without end
			require.True(t, c[0].TrySend(1, 2, 0, 0, make([]byte, 800)))
		}
		sent := 0
		for c[0].TrySend(1, 2, 0, 0, make([]byte, 800)) {
			sent++
		}
		require.LessOrEqual(t, sent, min(most.messages, most.bytes/800)/2)
	}
}
