package node

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

var (
	refused = signature.Call{Kind: signature.Refused, Root: 1}.Word()
	barrier = signature.Call{Kind: signature.Barrier}.Word()
	bcast   = signature.Call{Kind: signature.Bcast, Root: 1, Of: signature.Int, Count: 1}.Word()
)

// A reminder of another call than this rank has made in the same place halts it, and no other does.
func TestReminders(t *testing.T) {
	for _, test := range []struct {
		name   string
		number int
		word   signature.Word
		before func(e *engine, c *comm)
		halts  bool
	}{
		{"of another call", 1, barrier, nil, true},
		{"of the same call", 1, bcast, nil, false},
		{"of a bad call", 1, refused, nil, true},
		{"of a call still to come", 2, barrier, nil, false},
		{"of an epoch that is over", 1, barrier, func(_ *engine, c *comm) { c.Advance(0, errors.New("an error")) }, false},
		{"where a member has died", 1, barrier, func(e *engine, _ *comm) { e.buries(2) }, false},
		{"from the dead", 1, barrier, func(e *engine, _ *comm) { e.buries(1) }, false},
		{"to what has expired", 1, barrier, func(e *engine, c *comm) { e.mu.Lock(); e.expire(c.liveness); e.unlock() }, false},
		{"of what this rank has closed", 1, barrier, func(_ *engine, c *comm) { _ = c.Close() }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, c, _ := alone(t, true)
			require.Equal(t, 1, c.Call(0, bcast))
			if test.before != nil {
				test.before(e, c)
			}
			e.came(1, header{kind: reminder, to: world, tag: transport.CollectiveTag(test.number), signature: test.word}, nil)
			require.NoError(t, c.Failed())
			require.Equal(t, test.halts, c.Mismatch() != nil)
		})
	}
}

// A rank that finds that its call differs from another rank's tells that one, whether the call or
// the other's message comes first.
func TestMismatchIsTold(t *testing.T) {
	for _, late := range []bool{false, true} {
		c, _ := pair(false)
		tag := transport.CollectiveTag(c[0].Call(0, barrier))
		require.True(t, c[0].TrySend(1, tag, 0, barrier, nil))
		if late {
			settle(c[:]...)
		}
		require.Equal(t, 1, c[1].Call(0, bcast))
		settle(c[:]...)
		for me := range c {
			var odd *transport.MismatchError
			require.ErrorAs(t, c[me].Mismatch(), &odd, "call after the message: %v; rank %d", late, me)
			require.Equal(t, transport.MismatchError{Number: 1, Own: []signature.Word{barrier, bcast}[me], Theirs: []signature.Word{bcast, barrier}[me], Source: 1 - me}, *odd)
		}
	}
}

// Ranks that wait for a bad call to receive or send, or for a rank that does, are halted. The rank
// that has made it is not.
func TestBadCallIsTold(t *testing.T) {
	for _, sends := range []bool{false, true} {
		c, _ := pair(false)
		tag := transport.CollectiveTag(c[0].Call(0, barrier))
		c[1].Call(0, refused)
		var n ends
		if sends {
			n.begin(c[0].Isend, transport.Request{Mode: transport.Synchronous, Peer: 1, Tag: tag, Signature: barrier})
		} else {
			n.begin(c[0].Irecv, transport.Request{Peer: 1, Tag: tag, Signature: barrier})
		}
		settle(c[:]...)
		require.NoError(t, c[0].Mismatch())
		for range 2 {
			c[0].e.remind(1)
			settle(c[:]...)
		}
		require.Error(t, c[0].Mismatch(), "sends: %v", sends)
		require.NoError(t, c[1].Mismatch())
		word, ok := c[0].Made(0, 7)
		require.True(t, ok && word == refused, "for those that wait for it")
	}
}

// A rank that waits sends reminders after 1, 2, 4 … periods: to each rank that it waits for, and
// during an agreement to all others. If a member has died it sends none.
func TestWhoIsReminded(t *testing.T) {
	word := signature.Call{Kind: signature.Dup}.Word()
	for _, test := range []struct {
		name string
		r    transport.Request
		want []int // of each process
	}{
		{"a collective call", transport.Request{Peer: 2, Tag: transport.CollectiveTag(1), Signature: word}, []int{0, 0, 4}},
		{"an agreement", transport.Request{Peer: 0, Tag: transport.NoTag, Signature: word}, []int{0, 4, 4}},
		{"a receive", transport.Request{Peer: 2, Tag: 7, Signature: signature.Message(signature.Int)}, []int{0, 0, 0}},
		{"a call that meets", transport.Request{Peer: transport.AnySource}, []int{0, 4, 4}},
		{"what only an error ends", transport.Request{Peer: 0, Tag: transport.NoTag}, []int{0, 0, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, c, _ := alone(t, true)
			e.out[1] = nil // the fabric has all packets
			c.Call(0, word)
			var n ends
			if e.from[2] = e.from[1]; test.r.Peer == transport.AnySource {
				meet(c, transport.ToRoot, 0)
			} else {
				n.begin(c.Irecv, test.r)
			}
			for range 9 { // the first finds the request, which has waited for a part of a period
				e.remind(1)
			}
			packets := e.fabric.(*memoryFabric).job.processes
			for p, want := range test.want {
				require.Len(t, packets[p].packets[0], want, "process %d", p)
			}
			e.buries(1)
			c.reminding.periods = 1<<20 - 1
			e.remind(1)
			require.Len(t, packets[2].packets[0], test.want[2])
		})
	}
}
