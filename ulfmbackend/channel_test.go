package ulfmbackend

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/sim"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// alone is a communicator of one rank, where nothing is carried out before Next.
type alone struct{ transport.Comm }

func (alone) Rank() int { return 0 }
func (alone) Size() int { return 1 }
func (alone) Poke()     {}

// An end is how a proposal ended.
type end struct {
	d   *errchan.Decision
	err error
}

// H5: an error does not end an agreement that is decided here, even if no proposer was told.
func TestDecidedIsDecided(t *testing.T) {
	cause := errors.New("an error")
	over := map[string]func(*Channel){
		"by a verdict": func(ch *Channel) { ch.Complete(ch.Freeze()); ch.Advance(0, cause, false, false) },
		"by an epoch":  func(ch *Channel) { ch.Advance(0, cause, false, false) },
		"by a revoke":  func(ch *Channel) { ch.Abandon(cause) },
		"by the end":   func(ch *Channel) { ch.Finish(cause) },
	}
	for name, over := range over {
		t.Run(name, func(t *testing.T) {
			ch := New(alone{}, 7, 0, nil)
			var ends []end
			done := func(d *errchan.Decision, err error) { ends = append(ends, end{d, err}) }
			ch.Propose(ch.Reserve(0, errchan.Dup), errchan.Proposal{Call: errchan.Dup, Flag: 5}, done)
			require.Empty(t, ends, "the decision is queued")
			over(ch)
			require.Len(t, ends, 1)
			require.NoError(t, ends[0].err)
			require.Equal(t, 5, ends[0].d.Flag)
			ch.Next()
			require.Len(t, ends, 1, "it ends once")
		})
	}
}

// An error to which all members have consented ends the agreements of its epoch, though
// another round is open that this rank has joined.
func TestOverWithAVerdictOfAll(t *testing.T) {
	ch, cause := New(pair{}, 7, 0, nil), errors.New("an error")
	var ends []end
	ch.Propose(ch.Reserve(0, errchan.Agree), errchan.Proposal{Call: errchan.Agree}, func(d *errchan.Decision, err error) { ends = append(ends, end{d, err}) })
	ch.Freeze()
	ch.Complete(nil)
	ch.Advance(1, cause, true, false)
	require.Equal(t, []end{{nil, cause}}, ends)
}

// H5: while a round is open that this rank has joined, its verdict may still say what an
// agreement of an epoch came to that another error has ended, before which a member died.
func TestOpenUntilAllVerdicts(t *testing.T) {
	first, second := errors.New("an error of the child"), errors.New("an error of the parent")
	for _, decided := range []bool{true, false} {
		ch := New(pair{}, 7, 0, nil)
		var ends []end
		id := ch.Reserve(0, errchan.Agree)
		ch.Propose(id, errchan.Proposal{Call: errchan.Agree, Flag: 5}, func(d *errchan.Decision, err error) { ends = append(ends, end{d, err}) })
		require.Empty(t, ch.Freeze())
		ch.Complete([]errchan.Settled{{Comm: 8, ID: id, Decision: &errchan.Decision{}}})
		ch.Advance(1, first, true, true)
		require.Empty(t, ends)
		if decided {
			ch.Complete([]errchan.Settled{{Comm: 7, ID: id, Decision: &errchan.Decision{Flag: 4}}})
			require.Equal(t, []end{{&errchan.Decision{Flag: 4}, nil}}, ends)
		}
		ch.Advance(0, second, false, false)
		require.Len(t, ends, 1)
		if !decided {
			require.Equal(t, first, ends[0].err)
			require.Equal(t, []errchan.Settled{{Comm: 7, ID: id}}, ch.Freeze(), "others are told that it ended so")
		}
		// Once two errors of one communicator have come, nobody can be in its epoch.
		ch.Advance(1, first, false, false)
		require.Empty(t, ch.Freeze())
	}
}

// pair is a communicator of two ranks, of which the other does nothing.
type pair struct{ alone }

func (pair) Size() int { return 2 }

// A raiser is a rank whose program raises often before it joins.
type raiser struct {
	*Channel
	verdicts []*errchan.Verdict
	holds    bool // it joins only when told to
	round    uint64
}

func (r *raiser) Noticed(round uint64, _ int, _ bool) {
	if r.round = round; !r.holds {
		r.Join(round, r.Freeze())
	}
}

func (r *raiser) Asked([]byte) {}

func (r *raiser) Resolved(v *errchan.Verdict) {
	r.verdicts = append(r.verdicts, v)
	r.Advance(0, errors.New("an error"), false, false)
}
func (*raiser) Died(int)    {}
func (*raiser) Revoked(int) {}
func (*raiser) Released()   {}

// A counter counts what the error channel of a rank sends up.
type counter struct {
	transport.Comm
	messages, bytes *int
}

func (c counter) Listen(l transport.Listener) { c.Comm.Listen(countingListener{l, c}) }

type countingListener struct {
	transport.Listener
	counter
}

func (l countingListener) Next() (to int, payload []byte, ok bool) {
	if to, payload, ok = l.Listener.Next(); ok && payload[0] == byte(Up) {
		*l.messages++
		*l.bytes += len(payload)
	}
	return to, payload, ok
}

// P6: a report goes up once, however many the ranks raise, and whenever.
func TestReportsGoUpOnce(t *testing.T) {
	const n, each, size, depth = 64, 16, 1024, 6
	w := sim.New(sim.Config{Ranks: n, Seed: 1, Model: sim.LogGP{Latency: time.Microsecond, Overhead: time.Microsecond}})
	ranks := make([]raiser, n)
	messages, bytes := make([]int, n), make([]int, n)
	for r := range n {
		c := &ranks[r]
		c.holds = r == n-1
		w.At(0, r, func() {
			dup, err := w.Comm(r).Sub(transport.ErrorChannelName(), nil)
			require.NoError(t, err)
			c.Channel = New(counter{dup, &messages[r], &bytes[r]}, 0, 0, c)
			c.Listen()
		})
		for k := range each {
			w.At(time.Duration(1+20*k)*time.Microsecond, r, func() {
				if !c.holds {
					c.Raise(append(fmt.Appendf(nil, "%d.%d", r, k), make([]byte, size)...), false, c.Freeze())
				}
			})
		}
	}
	w.At(time.Second, n-1, func() { ranks[n-1].Join(ranks[n-1].round, nil) })
	require.NoError(t, w.Run())
	total, most := 0, 0
	for r := range n {
		require.Len(t, ranks[r].verdicts, 1)
		require.Len(t, ranks[r].verdicts[0].Reports, (n-1)*each)
		require.Equal(t, ranks[0].verdicts[0], ranks[r].verdicts[0])
		total += bytes[r]
		most = max(most, messages[r])
	}
	t.Logf("%d bytes go up, a rank sends %d messages at most", total, most)
	require.LessOrEqual(t, total, n*each*(size+16)*depth)
	require.LessOrEqual(t, most, each*depth)
}

// P5: a report that is raised after the machine has a verdict, but before the client has been told,
// does not join the next round: the decisions that the client passes with it are of the epoch
// before.
func TestRaisedBeforeTold(t *testing.T) {
	c := &raiser{holds: true}
	c.Channel = New(alone{}, 7, 0, c)
	c.Raise([]byte("a"), false, c.Freeze())
	c.Raise([]byte("b"), false, c.Freeze())
	c.Next()
	require.Len(t, c.verdicts, 1)
	require.EqualValues(t, 1, c.round)
	require.Contains(t, c.Waiting(), "error round 1 waits for this rank to join")
	c.Join(1, c.Freeze())
	c.Next()
	require.Len(t, c.verdicts, 2)
	require.Equal(t, []errchan.Report{{Data: []byte("b")}}, c.verdicts[1].Reports)
}
