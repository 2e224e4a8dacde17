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
	g := transporttest.NewGathering(flow, root, c.Size(), []byte{'A' + byte(c.rank)})
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
		waits := meet(s[0], transport.ToRoot, 0)
		require.False(t, waits.ended(), "rank 1 may come")
		endWith(t, nil, meet(s[1], transport.ToRoot, 0))
		endWith(t, gone, waits)
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
	part := func(from int, k kind, bytes string) {
		e.came(from, header{kind: k, to: world, tag: transport.CollectiveTag(c.made()), signature: signature.Word(signature.Gather), length: len(bytes)}, []byte(bytes))
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
		require.Zero(t, r.Meeting.Recv[0])
	}
	require.NoError(t, e.err)
}

// made returns the number of the last call.
func (c *comm) made() int { n, _ := c.Called(); return n }
