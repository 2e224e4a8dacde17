package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// await makes the program of a rank wait for requests.
func await(c *Comm, requests ...*request) {
	for _, r := range requests {
		r.awaited = true
	}
	c.Look()
}

// operations are what rank 0 of 3 may have under way, and what rank 1 has to do with it.
var operations = []struct {
	name  string
	start func(c *Comm) *request
	names bool // it names rank 1, and so ends when rank 1 returns
	call  bool // even if the program does not wait
}{
	{"receive", func(c *Comm) *request { return recv(c, 1, nil) }, true, false},
	{"receive of any tag", func(c *Comm) *request { return start(c, c.Irecv, transport.Request{Peer: 1, Tag: transport.AnyTag}) }, true, false},
	{"probe", func(c *Comm) *request { return start(c, c.Probe, transport.Request{Peer: 1, Tag: 3}) }, true, false},
	{"synchronous send", func(c *Comm) *request { return send(c, 1, nil, transport.Synchronous) }, true, false},
	{"long send", func(c *Comm) *request { return send(c, 1, make([]byte, EagerLimit+1), 0) }, true, false},
	{"the library's receive", func(c *Comm) *request { return start(c, c.Irecv, transport.Request{Peer: 1, Tag: -7}) }, true, true},
	{"the library's send", func(c *Comm) *request {
		return start(c, c.Isend, transport.Request{Peer: 1, Tag: -7, Mode: transport.Synchronous})
	}, true, true},
	{"receive from another", func(c *Comm) *request { return recv(c, 2, nil) }, false, false},
	{"receive from oneself", func(c *Comm) *request { return recv(c, 0, nil) }, false, false},
	{"receive from anybody", func(c *Comm) *request { return recv(c, transport.AnySource, nil) }, false, false},
}

func TestWhatNamesOneWhoHasReturned(t *testing.T) {
	sent := send(New(2)[0], 1, nil, 0)
	require.Equal(t, 1, sent.ends, "buffered")
	for _, c := range operations {
		for what, order := range map[string][]func(c []*Comm, r **request){
			"left last":     {post(c.start), wait, leave},
			"left between":  {post(c.start), leave, wait},
			"left first":    {leave, post(c.start), wait},
			"nobody waits":  {post(c.start), leave},
			"nobody leaves": {post(c.start), wait},
		} {
			ranks := New(3)
			var r *request
			for _, do := range order {
				do(ranks, &r)
			}
			ends := c.names && (len(order) == 3 || c.call && what == "nobody waits")
			require.Equal(t, ends, r.ends == 1, "%s, %s", c.name, what)
			if ends {
				require.Equal(t, &transport.LeftError{Rank: 1}, r.Err)
				isIdle(t, ranks[0])
			} else {
				require.True(t, ranks[0].Cancel(&r.Request))
			}
		}
	}
}

func post(start func(*Comm) *request) func([]*Comm, **request) {
	return func(c []*Comm, r **request) { *r = start(c[0]) }
}
func wait(c []*Comm, r **request)  { await(c[0], *r) }
func leave(c []*Comm, _ **request) { c[1].Leave(false) }

// A request that was begun before an error ends with it, if the rank that has returned knows it.
func TestReturnedAfterAnError(t *testing.T) {
	ranks := New(2)
	named, anybody := recv(ranks[0], 1, nil), recv(ranks[0], transport.AnySource, nil)
	await(ranks[0], named, anybody)
	cause := &transport.LeftError{Rank: 5} // any error
	ranks[1].Advance(0, cause)
	ranks[1].Leave(false)
	for _, r := range []*request{named, anybody} {
		require.Zero(t, r.ends)
	}
	ranks[0].Advance(0, cause)
	for _, r := range []*request{named, anybody} {
		require.Equal(t, cause, r.Err)
	}
	named = recv(ranks[0], 1, nil)
	await(ranks[0], named)
	require.Equal(t, &transport.LeftError{Rank: 1}, named.Err)
}

// A communicator made without the ranks that have returned is not affected by them.
func TestReturnedInOtherCommunicators(t *testing.T) {
	ranks := New(4)
	var part, all *Comm
	sub := func(rank int, seq uint64, members []int) *Comm {
		c, err := ranks[rank].Sub(transport.Name{Seq: seq}, members)
		require.NoError(t, err)
		return c.(*Comm)
	}
	ranks[3].Leave(false)
	part, all = sub(0, 1, []int{2, 0}), sub(0, 2, nil)
	r, named := recv(part, transport.AnySource, nil), recv(all, 3, nil)
	await(part, r)
	await(all, named)
	require.Zero(t, r.ends)
	require.Equal(t, 1, named.ends)
	ranks[2].Leave(false)
	require.Equal(t, 1, r.ends)
	one := New(1)[0]
	r = recv(one, transport.AnySource, nil)
	one.Leave(false)
	await(one, r)
	require.Zero(t, r.ends)
}

// A rank that lives may still send, and a rank that has never had a peer has lost none.
func TestReceiveFromAnybodyWhileOneLives(t *testing.T) {
	ranks, alone := NewMortal(3), NewMortal(1)[0]
	ranks[1].Die()
	for _, c := range []*Comm{ranks[0], alone} {
		r := recv(c, transport.AnySource, nil)
		r.acknowledged = true
		await(c, r)
		require.Zero(t, r.ends)
	}
}

// Nothing reaches a process that has died, not even what had arrived before.
func TestTheDeadReceiveNothing(t *testing.T) {
	ranks := NewMortal(2)
	require.True(t, ranks[0].TrySend(1, 1, 0, 0, []byte{9}))
	ranks[1].Die()
	require.Equal(t, transport.ErrDied, recv(ranks[1], 0, make([]byte, 1)).Err)
	require.Equal(t, transport.ErrDied, start(ranks[1], ranks[1].Probe, transport.Request{Peer: 0, Tag: 1}).Err)
}

// mourner is a listener that is called when a rank has died.
type mourner func(rank int)

func (m mourner) Died(rank int)             { m(rank) }
func (m mourner) Take(int, []byte)          {}
func (m mourner) Next() (int, []byte, bool) { return 0, nil, false }
func (m mourner) Purpose([]byte) string     { return "" }

// A rank that has been told of a death receives no message that dies with the sender, on any
// communicator, but every message that was buffered.
func TestMessagesThatDieWithTheirSender(t *testing.T) {
	ranks := NewMortal(2)
	var dups [2]*Comm
	for i, c := range ranks {
		dup, err := c.Sub(transport.Name{Seq: 1}, nil)
		require.NoError(t, err)
		dups[i] = dup.(*Comm)
	}
	var kept, lost, sent []*request
	ranks[0].Listen(mourner(func(int) {
		for _, c := range []*Comm{ranks[0], dups[0]} {
			kept = append(kept, start(c, c.Irecv, transport.Request{Peer: 1, Tag: 2, Buf: make([]byte, 1)}))
			lost = append(lost, recv(c, 1, make([]byte, 1)))
		}
	}))
	for _, c := range []*Comm{ranks[1], dups[1]} {
		require.True(t, c.TrySend(0, 2, 0, 0, []byte{9}))
		sent = append(sent, send(c, 0, []byte{1}, transport.Synchronous))
	}
	ranks[1].Die()
	require.Len(t, kept, 2)
	for i := range 2 {
		require.NoError(t, kept[i].Err)
		require.Equal(t, byte(9), kept[i].Buf[0])
		require.Equal(t, &transport.DeadError{Rank: 1}, lost[i].Err)
		require.Equal(t, transport.ErrDied, sent[i].Err)
	}
}

// A rank never dies because of what needs it on a communicator that it has released, not even when
// its program has ended. If the others have died or released it, a receive from anybody ends, too.
func TestReleasedAndReturned(t *testing.T) {
	for _, first := range []bool{false, true} {
		ranks := NewMortal(3)
		var dups [3]*Comm
		for i, c := range ranks {
			dup, err := c.Sub(transport.Name{Seq: 1}, nil)
			require.NoError(t, err)
			dups[i] = dup.(*Comm)
		}
		if first {
			dups[1].Release()
		}
		named, call, anybody := recv(dups[0], 1, nil), meet(dups[0], transport.Together, 0, 0), recv(dups[0], transport.AnySource, nil)
		waits := recv(dups[0], 1, nil)
		await(dups[0], anybody, waits)
		dups[1].Release()
		require.Equal(t, []int{1, 1}, []int{call.ends, waits.ends}, "no Look is needed")
		step := start(dups[0], dups[0].Irecv, transport.Request{Peer: 1, Tag: -7})
		require.Equal(t, 1, step.ends)
		ranks[1].Leave(false)
		require.Zero(t, named.ends, "the program does not wait")
		sent := send(dups[0], 1, nil, transport.Synchronous)
		await(dups[0], named, sent)
		for _, r := range []*request{named, call, step, waits, sent} {
			require.Equal(t, &transport.LeftError{Rank: 1, Released: true}, r.Err)
		}
		require.False(t, ranks[1].process.dead.Load())
		require.Zero(t, anybody.ends)
		ranks[2].Die()
		require.Equal(t, &transport.LeftError{Rank: transport.AnySource, Released: true}, anybody.Err)
		require.False(t, ranks[1].process.dead.Load())
		isIdle(t, dups[0])
		recv(ranks[0], 1, nil)
		require.True(t, ranks[1].process.dead.Load(), "which it has not released")
	}
}
