package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// meet has a rank make a call, with its rank, in capitals, as its byte.
func meet(c *comm, flow transport.Flow, root int) *request {
	g := transporttest.NewGathering(flow, root, c.rank, c.Size(), []byte{'A' + byte(c.rank)})
	r := &request{Request: transport.Request{Meeting: &g.Meeting, Signature: signature.Word(signature.Gather), Epoch: c.Epoch()}}
	return r.start(func(q *transport.Request) {
		if c.Meet(q) {
			r.Completed(q)
		}
	})
}

// H1, H9: a call ends with the death of any rank, and when it needs a rank that has returned
// without it. What a rank has shown before counts.
func TestMeetWithoutOne(t *testing.T) {
	for _, mortal := range []bool{false, true} {
		jobs := startMemory(t, 3, true, mortal)
		s := comms(jobs)
		gone := error(&transport.LeftError{Rank: 2})
		if mortal {
			gone = &transport.DeadError{Rank: 2}
		}
		shown := []*request{meet(s[2], transport.Together, 0), meet(s[0], transport.Together, 0)}
		s[0].EachPending(func(r *transport.Request) { require.Equal(t, 1, r.Peer) })
		served := meet(s[0], transport.FromRoot, 1)
		s[2].Leave(false)
		untilLeft(s[0], 2)
		untilLeft(s[1], 2)
		endWith(t, nil, append(shown, meet(s[1], transport.Together, 0))...)
		require.Equal(t, "ABC", string(shown[1].Meeting.Recv))
		endWith(t, nil, meet(s[1], transport.FromRoot, 1), served)
		require.Equal(t, "B", string(served.Meeting.Recv[:1]))
		endWith(t, gone, meet(s[0], transport.ToRoot, 0))
		endWith(t, gone, meet(s[0], transport.FromRoot, 2))
	}
}

func TestMeetTheDead(t *testing.T) {
	jobs := startMemory(t, 3, true, true)
	s := comms(jobs)
	told, waits, root := listen(s[0]), meet(s[0], transport.Together, 0), meet(s[1], transport.FromRoot, 0)
	die(jobs[2])
	require.Equal(t, []int{2}, told.wait(1))
	endWith(t, &transport.DeadError{Rank: 2}, waits, meet(s[0], transport.ToRoot, 1), meet(s[0], transport.FromRoot, 0))
	endWith(t, nil, root)
}

// Whatever a faulty rank sends in a call, the others' memory stays theirs, and nobody hangs.
func TestMeetGarbage(t *testing.T) {
	e, c, _ := alone(t, true)
	e.machines, e.from[2], e.limit = make([]int, 3), e.from[1], nearLimit
	require.Positive(t, c.board())
	word := signature.Word(signature.Gather)
	number := 0
	part := func(from int, k kind, bytes string) {
		e.came(from, header{kind: k, to: world, tag: transport.CollectiveTag(number), signature: word, length: len(bytes)}, []byte(bytes))
	}
	meet := func(c *comm, flow transport.Flow, root int) *request {
		r := meet(c, flow, root)
		number, _ = c.Called()
		return r
	}
	r := meet(c, transport.Together, 0)
	part(1, whole, "b")
	part(1, whole, "x") // a second part
	require.False(t, r.ended())
	part(2, whole, "c")
	require.Equal(t, "Abc", string(r.Meeting.Recv))
	endWith(t, nil, r)
	for _, wrong := range []func(){func() { part(2, whole, "long") }, func() { part(2, whole, "") }, func() { part(2, offer, "?") }} {
		r := meet(c, transport.Together, 0)
		wrong()
		require.Error(t, r.wait())
		require.Zero(t, r.Meeting.Recv[2])
	}
	old, of := meet(c, transport.Together, 0), number
	for range 10 {
		meet(c, transport.Together, 0)
	}
	word, number = signature.Word(signature.Scatter), of
	part(2, whole, "c") // of another call, which this rank does not recall
	require.IsType(t, (*transport.MismatchError)(nil), old.wait())
	require.NoError(t, e.err)
}

// held has f send while rank 0 takes nothing, so that what is sent is in its rings.
func held(c *comm, f func()) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	f()
}

// A call takes its own parts from the rings and nothing else, and ends with the first error.
func TestMeetFromTheRings(t *testing.T) {
	for i := range 50 {
		s := comms(startMemory(t, 3, true, false))
		sub := func(c *comm) *comm {
			d, err := c.Sub(transport.Name{Seq: 1}, []int{0, 1})
			require.NoError(t, err)
			return d.(*comm)
		}
		a, b := sub(s[0]), sub(s[1])
		held(a, func() { meet(b, transport.ToRoot, 0) }) // another communicator
		r := meet(s[0], transport.ToRoot, 0)
		require.False(t, r.ended())
		meet(s[1], transport.ToRoot, 0)
		meet(s[2], transport.ToRoot, 0)
		endWith(t, nil, r, meet(a, transport.ToRoot, 0))
		first := meet(a, transport.ToRoot, 0)
		held(a, func() { meet(b, transport.ToRoot, 0) }) // another call
		second := meet(a, transport.ToRoot, 0)
		require.False(t, second.ended())
		meet(b, transport.ToRoot, 0)
		endWith(t, nil, first, second)
		a.Advance(0, transport.ErrCancelled) // so both count from 1
		b.Advance(0, transport.ErrCancelled)
		b.Advance(0, transport.ErrCancelled)
		held(a, func() { meet(b, transport.ToRoot, 0) }) // another epoch
		r = meet(a, transport.ToRoot, 0)
		require.False(t, r.ended())
		a.Advance(0, transport.ErrCancelled)
		endWith(t, transport.ErrCancelled, r)
		endWith(t, nil, meet(a, transport.ToRoot, 0))
		a.e.glance()
		require.Zero(t, a.Kept())
		wrong := 1 + i%2 // its part is too long, or is that of another call
		odd := header{kind: whole, to: world, tag: transport.CollectiveTag(2), signature: signature.Word(signature.Gather), length: 2}
		if i%4 < 2 {
			odd.signature, odd.length = signature.Word(signature.Scatter), 1
		}
		held(s[0], func() {
			held(s[wrong], func() { s[wrong].e.sendPacket(0, &odd, []byte("xx")[:odd.length]) })
			meet(s[3-wrong], transport.ToRoot, 0)
		})
		require.Error(t, meet(s[0], transport.ToRoot, 0).wait())
	}
}

// A rank that waits for several learns of any whose program ends (H9).
func TestMeetWaitsForAll(t *testing.T) {
	s := comms(startMemory(t, 3, true, false))
	waits := []*request{meet(s[0], transport.ToRoot, 0), meet(s[0], transport.Together, 0)}
	s[2].Leave(false)
	endWith(t, &transport.LeftError{Rank: 2}, waits...)
}
