package node

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A process that is far ahead of another waits until that one receives. All arrives in order.
func TestFarAhead(t *testing.T) {
	setMostLead(t, lead{1000, 1 << 20})
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
			s := begin(c[0].Isend, 1, test.tag, last)
			settle(c[:]...)
			require.False(t, s.ended())
			for i := sent - test.most - 1; i < sent; i++ {
				r := begin(c[1].Irecv, 0, test.tag, make([]byte, test.length))
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
	for _, most := range []lead{{100, 1 << 20}, {1 << 16, 80_000}} {
		setMostLead(t, most)
		c, _ := pair(false)
		for i := range 1000 {
			for me := range c {
				require.True(t, c[me].TrySend(1-me, 2, 0, 0, make([]byte, 800)), "message %d of process %d", i, me)
			}
			settle(c[:]...)
			for me := range c {
				r := begin(c[me].Irecv, 1-me, 2, make([]byte, 800))
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

// A process gives credit for messages that it discards, too.
func TestCreditForDiscarded(t *testing.T) {
	setMostLead(t, lead{100, 1 << 20})
	for name, discard := range map[string]func(c [2]*comm){
		"kept, of an epoch that is over":    func(c [2]*comm) { settle(c[:]...); advance(c[:]...) },
		"late, of an epoch that is over":    func(c [2]*comm) { advance(c[:]...) },
		"kept, on a revoked communicator":   func(c [2]*comm) { settle(c[:]...); c[1].Revoke(errDiscarded) },
		"late, on a revoked communicator":   func(c [2]*comm) { c[1].Revoke(errDiscarded) },
		"kept, on a communicator that ends": func(c [2]*comm) { settle(c[:]...); _ = c[1].Close() },
		"late, on a communicator that ends": func(c [2]*comm) { _ = c[1].Close() },
		"taken by an Mprobe": func(c [2]*comm) {
			r := begin(c[1].Mprobe, 0, 2, nil)
			settle(c[:]...)
			require.True(t, r.ended())
			_ = c[1].Close()
		},
	} {
		world, _ := pair(false)
		for i := range 300 {
			var c [2]*comm
			for me := range c {
				sub, err := world[me].Sub(transport.Name{Seq: uint64(i)}, nil)
				require.NoError(t, err)
				c[me] = sub.(*comm)
			}
			require.True(t, c[0].TrySend(1, 2, 0, 0, nil), "%s: message %d", name, i)
			discard(c)
			settle(c[:]...)
		}
	}
}

// A process that is far ahead looks for credit that has come.
func TestCreditIsLookedFor(t *testing.T) {
	setMostLead(t, lead{100, 1 << 20})
	c, _ := pair(false)
	for i := range 300 {
		s := begin(c[0].Isend, 1, 2, nil)
		require.True(t, s.ended(), "message %d", i)
		settle(c[1])
		begin(c[1].Irecv, 0, 2, nil)
	}
}

var errDiscarded = errors.New("an error after which messages are discarded")

func advance(cs ...*comm) {
	for _, c := range cs {
		c.Advance(0, errDiscarded)
	}
}

// setMostLead changes the lead that is far, for a test.
func setMostLead(t *testing.T, most lead) {
	before := mostLead
	t.Cleanup(func() { mostLead = before })
	mostLead = most
}
