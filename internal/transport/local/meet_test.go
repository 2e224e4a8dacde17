package local

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/transporttest"
)

// meet has a rank make a call on the board, with its rank, in capitals, as its byte.
func meet(c *Comm, flow transport.Flow, root int, kind signature.Kind) *request {
	m := transporttest.NewGathering(flow, root, c.rank, c.Size(), []byte{'A' + byte(c.rank)})
	r := transport.Request{Meeting: &m.Meeting, Signature: signature.Call{Kind: kind}.Word()}
	return start(c, func(r *transport.Request) {
		if c.Meet(r) {
			r.Done.Completed(r)
		}
		m.Send[0] = '-' // if the rank does not wait, its buffer is the program's
	}, r)
}

// A rank's call ends as soon as those that it needs have come, in whatever order: all, all at the
// root, or the root.
func TestMeet(t *testing.T) {
	for flow, root := range map[transport.Flow]int{transport.Together: 0, transport.ToRoot: 1, transport.FromRoot: 2} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
			ranks, rs := New(3), make([]*request, 3)
			for came, rank := range order {
				rs[rank] = meet(ranks[rank], flow, root, signature.Barrier)
				for _, i := range order[:came+1] {
					all := came == 2 || flow == transport.ToRoot && i != root || flow == transport.FromRoot && slices.Contains(order[:came+1], root)
					require.Equal(t, all, rs[i].ends == 1, "flow %d, order %v, %d come, rank %d", flow, order, came+1, i)
					require.False(t, rs[i].locked)
					require.Equal(t, !all, len(transport.Pending(ranks[i])) == 1)
				}
			}
		}
	}
}

// What a rank waits for ends with an error that comes, of itself alone; others wait until they are
// told, and no later rank carries the call out.
func TestMeetInterrupted(t *testing.T) {
	cause := errors.New("an error")
	for what, leave := range map[string]func(c *Comm){
		"error":  func(c *Comm) { c.Advance(0, cause) },
		"revoke": func(c *Comm) { c.Revoke(cause) },
	} {
		ranks := New(3)
		rs := []*request{meet(ranks[0], transport.Together, 0, signature.Barrier), meet(ranks[1], transport.Together, 0, signature.Barrier)}
		leave(ranks[0])
		require.Equal(t, []any{1, cause, 0}, []any{rs[0].ends, rs[0].Err, rs[1].ends}, what)
		last := meet(ranks[2], transport.Together, 0, signature.Barrier)
		require.Zero(t, last.ends+rs[1].ends, what)
		leave(ranks[1])
		leave(ranks[2])
		require.Equal(t, []error{cause, cause}, []error{rs[1].Err, last.Err}, what)
		if what == "revoke" {
			require.Equal(t, cause, meet(ranks[0], transport.Together, 0, signature.Barrier).Err)
			continue
		}
		for i, c := range ranks { // the next epoch
			require.Equal(t, i == 2, meet(c, transport.Together, 0, signature.Barrier).ends == 1)
		}
	}
}

// A call that needs a rank which has returned ends; if processes are mortal, that rank dies.
func TestMeetWhoHasReturned(t *testing.T) {
	for _, test := range []struct {
		name  string
		flow  transport.Flow
		root  int
		needs bool // of rank 0, that rank 1 comes
	}{
		{"all", transport.Together, 0, true},
		{"to the root", transport.ToRoot, 0, true},
		{"from it", transport.FromRoot, 1, true},
		{"from another", transport.FromRoot, 2, false},
	} {
		for _, mortal := range []bool{false, true} {
			for _, first := range []bool{false, true} {
				ranks := newJob(3, mortal)
				for _, c := range ranks { // all make a call before
					meet(c, transport.FromRoot, 2, signature.Barrier)
				}
				if first {
					ranks[1].Leave(false)
				}
				r := meet(ranks[0], test.flow, test.root, signature.Barrier)
				if !first {
					require.Zero(t, r.ends, test.name)
					ranks[1].Leave(false)
				}
				require.Equal(t, test.needs, r.ends == 1, "%s, mortal %t, returned first %t", test.name, mortal, first)
				if test.needs {
					require.Equal(t, map[bool]error{true: &transport.DeadError{Rank: 1}, false: &transport.LeftError{Rank: 1}}[mortal], r.Err)
				}
			}
		}
	}
}

// What a rank had begun before it returned is carried out without it; a communicator that is made
// after that never has its calls.
func TestMeetAfterItHasReturned(t *testing.T) {
	ranks := New(3)
	meet(ranks[1], transport.Together, 0, signature.Barrier)
	ranks[1].Leave(false)
	waits := meet(ranks[0], transport.Together, 0, signature.Barrier)
	require.Zero(t, waits.ends)
	meet(ranks[2], transport.Together, 0, signature.Barrier)
	require.Equal(t, 1, waits.ends)
	sub, err := ranks[0].Sub(transport.ErrorChannelName(), nil)
	require.NoError(t, err)
	require.Equal(t, &transport.LeftError{Rank: 1}, meet(sub.(*Comm), transport.Together, 0, signature.Barrier).Err)
	ranks = New(3)
	ranks[2].Leave(false)
	root := start(ranks[0], func(r *transport.Request) { ranks[0].Meet(r) },
		transport.Request{Meeting: &transport.Meeting{Flow: transport.FromRoot, Part: transport.Part{Send: make([]byte, 2000)}, Carrier: waits.Meeting.Carrier}})
	require.Equal(t, &transport.LeftError{Rank: 2}, root.Err, "which waits, as it has much to send")
	require.Equal(t, &transport.LeftError{Rank: 2}, meet(ranks[1], transport.FromRoot, 0, 0).Err, "whom the root does not serve any more")
}

// A rank that was halted, in the call or before it, is missed when it has returned: what others
// rightly wait for does not come.
func TestMeetTheHalted(t *testing.T) {
	together := func(c *Comm) *request { return meet(c, transport.Together, 0, signature.Barrier) }
	for name, play := range map[string]func(ranks []*Comm) *request{
		"after the call": func(ranks []*Comm) *request {
			together(ranks[0])
			together(ranks[1])
			calls(0, reduce)(ranks)
			calls(1, barrier)(ranks)
			return together(ranks[2])
		},
		"before it": func(ranks []*Comm) *request {
			calls(2, refused)(ranks)
			calls(0, barrier)(ranks)
			calls(1, barrier)(ranks)
			return together(ranks[2])
		},
		"in it": func(ranks []*Comm) *request {
			r := start(ranks[2], func(r *transport.Request) { ranks[2].Meet(r) }, transport.Request{
				Signature: raw, Meeting: &transport.Meeting{Flow: transport.ToRoot, Root: 2},
			})
			calls(0, ints)(ranks)
			calls(1, floats)(ranks)
			return r
		},
	} {
		for _, mortal := range []bool{false, true} {
			ranks := newJob(3, mortal)
			waits := play(ranks)
			require.Zero(t, waits.ends, name)
			ranks[0].Leave(false)
			ranks[1].Leave(false)
			require.Equal(t, 1, waits.ends, "%s, mortal %t", name, mortal)
			require.Error(t, waits.Err)
		}
	}
}

// A rank that has left the epoch and returned is not missed in a call of that epoch: the others
// will be told of the error.
func TestMeetWhoHasLeftTheEpoch(t *testing.T) {
	for _, first := range []bool{false, true} {
		ranks, cause := NewMortal(2), errors.New("an error")
		var waits *request
		leave := func() {
			ranks[1].Advance(0, cause)
			ranks[1].Leave(false)
		}
		if first {
			leave()
		}
		waits = meet(ranks[0], transport.Together, 0, signature.Barrier)
		if !first {
			leave()
		}
		require.Zero(t, waits.ends)
		require.False(t, ranks[1].process.dead.Load())
		ranks[0].Advance(0, cause)
		require.Equal(t, cause, waits.Err)
		require.Equal(t, &transport.DeadError{Rank: 1}, meet(ranks[0], transport.Together, 0, signature.Barrier).Err)
	}
}

type completer func(*transport.Request)

func (f completer) Completed(r *transport.Request) { f(r) }

// The buffers of a call that another rank has ended are not free before Completer has returned.
func TestMeetIsNotQuietTooEarly(t *testing.T) {
	ranks := New(2)
	quiet := false
	m := transporttest.NewGathering(transport.Together, 0, 0, 2, nil)
	r := &transport.Request{Meeting: &m.Meeting, Done: completer(func(*transport.Request) {
		ranks[0].Quiesce(func() { quiet = true })
		require.False(t, quiet)
	})}
	require.False(t, ranks[0].Meet(r))
	meet(ranks[1], transport.Together, 0, 0)
	require.True(t, quiet)
}
