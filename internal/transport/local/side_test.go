package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// These tests cover what the conformance suite cannot see: when exactly a message is buffered,
// and that nothing is kept longer than it is needed.

// request is a request that no goroutine waits for: within one goroutine this transport ends
// requests before its methods return.
type request struct {
	transport.Request
	communicator *communicator
	ends         int
	locked       bool // something was locked when it ended

	awaited      bool
	acknowledged bool
}

func (r *request) Awaited() bool      { return r.awaited }
func (r *request) Acknowledged() bool { return r.acknowledged }

// Completed may be called with no lock held: it may start operations.
func (r *request) Completed(*transport.Request) {
	r.ends++
	for i := range r.communicator.sides {
		p := &r.communicator.sides[i]
		for _, mu := range []*sync.Mutex{&p.mu, &p.sending.mu} {
			if mu.TryLock() {
				mu.Unlock()
			} else {
				r.locked = true
			}
		}
	}
}

func start(c *Comm, f func(*transport.Request), r transport.Request) *request {
	q := &request{Request: r, communicator: c.comm}
	q.Epoch, q.Done = c.Epoch(), q
	f(&q.Request)
	return q
}

func send(c *Comm, to int, buf []byte, mode transport.Mode) *request {
	return start(c, c.Isend, transport.Request{Peer: to, Tag: 1, Buf: buf, Mode: mode})
}

func recv(c *Comm, from int, buf []byte) *request {
	return start(c, c.Irecv, transport.Request{Peer: from, Tag: 1, Buf: buf})
}

// isIdle checks that a rank's side keeps nothing but spare buffers.
func isIdle(t *testing.T, c *Comm) {
	t.Helper()
	require.Zero(t, c.Posted.Len())
	require.Zero(t, c.Arrived.Len())
	require.Empty(t, c.sending.messages)
	for _, m := range c.sending.messages[:cap(c.sending.messages)] {
		require.Nil(t, m, "a message that is not listed any more cannot be collected")
	}
	n := 0
	for m := c.free; m != nil; m = m.next {
		n++
		require.Nil(t, m.bytes, "a spare buffer keeps bytes")
		require.Nil(t, m.Send)
	}
	require.Equal(t, n, c.freeCount)
	require.LessOrEqual(t, n, spareBuffers)
}

// Messages to a rank that is far behind wait for their receives, and are received in order.
func TestNotTooManyMessagesAreBuffered(t *testing.T) {
	for _, c := range []struct{ tag, most int }{
		{transport.CollectiveTag(1), mostKeptOfCalls + 4*2},
		{2, mostKept},
	} {
		ranks := New(2)
		var sends []*request
		for i := range c.most + 3 {
			b := binary.AppendUvarint(nil, uint64(i))
			require.Equal(t, i < c.most, ranks[0].TrySend(1, c.tag, 0, 0, b))
			if i >= c.most {
				s := start(ranks[0], ranks[0].Isend, transport.Request{Peer: 1, Tag: c.tag, Buf: b})
				require.Zero(t, s.ends)
				sends = append(sends, s)
			}
		}
		for i := range c.most + 3 {
			r := start(ranks[1], ranks[1].Irecv, transport.Request{Peer: 0, Tag: c.tag, Take: true})
			require.Equal(t, 1, r.ends)
			got, _ := binary.Uvarint(r.Buf)
			require.EqualValues(t, i, got)
		}
		for _, s := range sends {
			require.Equal(t, 1, s.ends)
			require.NoError(t, s.Err)
		}
		isIdle(t, ranks[0])
		isIdle(t, ranks[1])
	}
}

// A goroutine may send in the new epoch while another still ends the old one.
func TestAdvanceLeavesSendsOfTheNewEpoch(t *testing.T) {
	ranks := New(2)
	p := ranks[0]
	for range 3 {
		send(ranks[0], 1, nil, transport.Synchronous)
	}
	e := p.Epoch().Next(0)
	p.Matcher.Advance(0, errors.New("an error"))
	for range 4 {
		send(ranks[0], 1, nil, transport.Synchronous)
	}
	require.Len(t, p.unlistIf(func(m *message) bool { return m.Epoch.Stale(e) }), 3)
	require.Len(t, p.sending.messages, 4)
	all := p.listed()
	for _, i := range []int{1, 3, 0, 2} {
		p.unlist(all[i])
		require.NotContains(t, p.listed(), all[i])
	}
	require.Empty(t, p.sending.messages)
}

// Shared bytes are handed over, not copied, whether the send or the receive comes first.
func TestTakeGetsTheSendersArray(t *testing.T) {
	for k := range 2 * 3 * 2 {
		mode := []transport.Mode{transport.Shared, transport.Shared | transport.Synchronous}[k%2]
		buf := make([]byte, []int{1, EagerLimit, 1 << 20}[k/2%3])
		ranks := New(2)
		if k < 6 {
			send(ranks[0], 1, buf, mode)
		}
		r := start(ranks[1], ranks[1].Irecv, transport.Request{Peer: 0, Tag: 1, Take: true})
		if k >= 6 {
			send(ranks[0], 1, buf, mode)
		}
		require.Equal(t, 1, r.ends)
		require.Len(t, r.Buf, len(buf))
		require.Same(t, unsafe.SliceData(buf), unsafe.SliceData(r.Buf))
	}
}

// TrySend sends a long message if a receive waits for it: behind a Probe, but not behind an Mprobe.
func TestTrySendLooksBehindProbes(t *testing.T) {
	ranks := New(2)
	trySend := func() bool { return ranks[0].TrySend(1, 1, 0, 0, make([]byte, EagerLimit+1)) }
	mprobe := start(ranks[1], ranks[1].Mprobe, transport.Request{Peer: 0, Tag: 1})
	require.False(t, trySend())
	require.True(t, ranks[1].Cancel(&mprobe.Request))
	probe := start(ranks[1], ranks[1].Probe, transport.Request{Peer: 0, Tag: transport.AnyTag})
	other := start(ranks[1], ranks[1].Irecv, transport.Request{Peer: 0, Tag: 2})
	require.False(t, trySend())
	mprobe = start(ranks[1], ranks[1].Mprobe, transport.Request{Peer: 0, Tag: 1})
	received := recv(ranks[1], 0, make([]byte, EagerLimit+1))
	require.False(t, trySend())
	require.True(t, ranks[1].Cancel(&mprobe.Request))
	require.True(t, trySend())
	require.Equal(t, []int{1, 1, 0}, []int{probe.ends, received.ends, other.ends})
	require.NoError(t, received.Err)
}

func TestShortMessagesNeedNoAllocation(t *testing.T) {
	ranks := New(2)
	s, r := &request{communicator: ranks[0].comm}, &request{communicator: ranks[0].comm}
	sendBuf, recvBuf := make([]byte, len(message{}.inline)), make([]byte, len(message{}.inline))
	sendRequest := transport.Request{Buf: sendBuf, Peer: 1, Tag: 1, Done: s}
	recvRequest := transport.Request{Buf: recvBuf, Peer: 0, Tag: 1, Done: r}
	isend := func() { s.Request = sendRequest; ranks[0].Isend(&s.Request) }
	irecv := func() { r.Request = recvRequest; ranks[1].Irecv(&r.Request) }
	require.Zero(t, testing.AllocsPerRun(100, func() { isend(); irecv() }), "message first")
	require.Zero(t, testing.AllocsPerRun(100, func() { irecv(); isend() }), "receive first")
	require.Equal(t, s.ends, r.ends)
	trySend := func() { require.True(t, ranks[0].TrySend(1, 1, 0, 0, sendBuf)) }
	require.Zero(t, testing.AllocsPerRun(100, func() { trySend(); irecv() }), "message first, TrySend")
	require.Zero(t, testing.AllocsPerRun(100, func() { irecv(); trySend() }), "receive first, TrySend")
}

// A communicator forgets those derived from it when all members have made them, or failed.
func TestSubsAreForgotten(t *testing.T) {
	const n = 4
	cause := errors.New("an error")
	ranks := New(n)
	subs := func() int { return len(ranks[0].comm.subs) }
	makeSub := func(c *Comm, e transport.Epoch, seq uint64, members []int) *communicator {
		made, err := c.Sub(transport.Name{Epoch: e, Seq: seq}, members)
		require.NoError(t, err)
		return made.(*Comm).comm
	}
	for _, c := range ranks {
		makeSub(c, 0, 1, nil)
	}
	for _, member := range []int{2, 0} {
		makeSub(ranks[member], 0, 2, []int{0, 2})
	}
	require.Zero(t, subs())

	all, part := makeSub(ranks[0], 0, 3, nil), makeSub(ranks[0], 0, 4, []int{0, 2})
	makeSub(&all.sides[0], 0, 1, nil)
	ranks[0].Advance(0, cause)
	ranks[1].Advance(0, cause)
	ranks[1].Advance(0, cause) // is not counted twice
	require.Equal(t, 2, subs())
	require.Same(t, all, makeSub(ranks[2], 0, 3, nil))
	require.Same(t, part, makeSub(ranks[2], 0, 4, []int{0, 2}))
	require.Equal(t, 1, subs())
	ranks[2].Advance(0, cause)
	require.Equal(t, 1, subs())
	ranks[3].Advance(0, cause)
	require.Zero(t, subs())
	require.Len(t, all.subs, 1, "the error of another family")

	makeSub(ranks[0], 0, 5, nil) // too late: it is forgotten at the next error
	for _, c := range ranks {
		c.Advance(0, cause)
	}
	require.Zero(t, subs())
}

// An error gives the program the buffers of what was pending. So a rank is not quiet while another
// goroutine copies a long message from its buffers, or into them (P4).
func TestQuiesceAfterCopies(t *testing.T) {
	long := make([]byte, EagerLimit+1)
	for name, transfer := range map[string]func(c []*Comm, r transport.Request){
		"TrySend": func(c []*Comm, r transport.Request) {
			start(c[1], c[1].Irecv, r)
			c[0].TrySend(1, 1, c[0].Epoch(), 0, long)
		},
		"Isend": func(c []*Comm, r transport.Request) {
			start(c[1], c[1].Irecv, r)
			send(c[0], 1, long, 0)
		},
		"Irecv": func(c []*Comm, r transport.Request) {
			send(c[0], 1, long, 0)
			start(c[1], c[1].Irecv, r)
		},
	} {
		for leaving := range 2 {
			if name == "TrySend" && leaving == 0 {
				continue // its bytes are the program's again when it returns
			}
			t.Run(fmt.Sprintf("%s, rank %d leaves", name, leaving), func(t *testing.T) {
				c := New(2)
				copies, finish, quiet := make(chan bool), make(chan bool), make(chan bool, 1)
				go transfer(c, transport.Request{Peer: 0, Tag: 1, Alloc: func(n int) []byte {
					close(copies)
					<-finish
					return make([]byte, n)
				}})
				<-copies
				c[leaving].Advance(0, errors.New("an error"))
				c[leaving].Quiesce(func() { quiet <- true })
				require.Empty(t, quiet)
				close(finish)
				<-quiet
			})
		}
	}
}
