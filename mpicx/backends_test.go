package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A script is a random program of which every outcome is determined: in each
// phase, errors are raised before the phase's first operation, so all of them are
// in one verdict (P2).
type script []phase

type phase struct {
	op     int // which operations
	arg    int
	raise  map[int]int // rank: how
	nested bool        // in a Try of its own
}

// The ways to raise. Those from unwind on end the program.
const (
	byReturn = iota
	byThrow
	bySignal
	bySignalError
	unwind
)

func newScript(rnd *rand.Rand, n int) script {
	s := make(script, 1+rnd.IntN(8))
	for i := range s {
		p := &s[i]
		p.op, p.arg, p.nested, p.raise = rnd.IntN(10), rnd.IntN(1000), rnd.IntN(3) == 0, make(map[int]int)
		if rnd.IntN(3) == 0 {
			how := byReturn
			if i == len(s)-1 {
				how = rnd.IntN(unwind + 1)
			}
			// A rank may hear of an error of the next phase while it is still inside of
			// this one; so only one has an error there.
			one := i > 0
			for r := range n {
				if rnd.IntN(3) == 0 && (!one || len(p.raise) == 0) {
					if p.raise[r] = how; how < unwind {
						p.raise[r] = rnd.IntN(unwind)
					}
				}
			}
		}
	}
	return s
}

// run plays the script at one rank and returns what it saw.
func (s script) run(ctx context.Context, world *mpicx.Comm) string {
	var seen strings.Builder
	err := world.Guard(ctx, func(ctx context.Context) error {
		for i, p := range s {
			if how, ok := p.raise[world.Rank()]; ok && how == unwind {
				return fmt.Errorf("rank %d unwinds", world.Rank())
			}
			out := make([]int, world.Size())
			err := world.TryAll(ctx, func(ctx context.Context) error {
				if !p.nested {
					return p.play(ctx, world, out)
				}
				return world.Try(ctx, func(ctx context.Context) error { return p.play(ctx, world, out) })
			})
			if err != nil {
				out = nil // part of it may be done
			}
			fmt.Fprintf(&seen, "%d: %v %s\n", i, out, told(err))
			if corrupted(err) {
				return err
			}
		}
		return nil
	})
	fmt.Fprintf(&seen, "end: %s\n", told(err))
	return seen.String()
}

// told is what all ranks are told alike.
func told(err error) string {
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
		return fmt.Sprint("propagated ", p.Failures)
	}
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		return fmt.Sprint("corrupted ", c.Failures)
	}
	return fmt.Sprint(err)
}

func (p phase) play(ctx context.Context, c *mpicx.Comm, out []int) error {
	me, n := c.Rank(), c.Size()
	if how, ok := p.raise[me]; ok {
		e := &placeError{me, p.arg}
		switch how {
		case byThrow:
			mpicx.Throw(e)
		case bySignal:
			return c.Signal(ctx, e)
		case bySignalError:
			return c.SignalError(ctx, p.arg)
		}
		return e
	}
	switch p.op {
	case 0:
		send := mpicx.Send(c, []int{me + p.arg}, (me+1)%n, p.arg)
		mpicx.Recv(c, out[:1], (me+n-1)%n, p.arg).MustWait(ctx)
		send.MustWait(ctx)
	case 1:
		mpicx.Allreduce(c, []int{me * p.arg}, out[:1], mpicx.Sum).MustWait(ctx)
	case 2:
		out[0] = me
		mpicx.Bcast(c, out, p.arg%n).MustWait(ctx)
	case 3:
		mpicx.Allgather(c, []int{me ^ p.arg}, out).MustWait(ctx)
	case 4:
		in := make([]int, n)
		for r := range in {
			in[r] = 100*me + r
		}
		mpicx.Alltoall(c, in, out).MustWait(ctx)
	case 5:
		mpicx.Scan(c, []int{me + 1}, out[:1], mpicx.Prod).MustWait(ctx)
	case 6: // many messages at once, to be told apart by tag
		for r := range n {
			mpicx.Ssend(c, make([]int, 1+p.arg), r, 100+me)
		}
		for r := range n {
			got, err := mpicx.RecvSlice[int](c, mpicx.AnySource, 100+r).Get(ctx)
			if err != nil {
				return err
			}
			out[r] = len(got)
		}
	default: // on a communicator of its own
		var derived *future.Future[*mpicx.Comm]
		switch p.op {
		case 7:
			derived = c.Split(me%(1+p.arg%3), -me)
		case 8:
			derived = c.Dup()
		default:
			derived = c.SplitShared(-me)
		}
		d := derived.MustGet(ctx)
		mpicx.Allreduce(d, []int{me}, out[:1], mpicx.Max).MustWait(ctx)
		out[n-1] = d.Rank()
		if err := d.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Both backends tell every rank the same, and move the same data.
func TestBackendsAgree(t *testing.T) {
	if machine.Processes() > 0 && mpicx.Backend == "ulfm" {
		t.Skip("processes that return may count as dead, which the black channel does not survive")
	}
	rnd := seeded(t)
	runs := 400
	if testing.Short() || buildtags.Race {
		runs = 100
	}
	for i := range runs {
		n := 1 + rnd.IntN(9)
		if i%40 == 0 {
			n = 30 + rnd.IntN(40)
		}
		if len(fitting(n)) == 0 {
			n = 1 + n%machine.Processes()
		}
		s := newScript(rnd, n)
		var seen [2][]string
		for b, backend := range []string{"blackchannel", "ulfm"} {
			seen[b] = make([]string, n)
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				seen[b][world.Rank()] = s.run(ctx, world)
				return nil
			}, mpicx.WithRanks(n), hook.Backend[mpicx.Option](backend))
			require.NoError(t, err)
			seen[b] = gather(t, seen[b])
		}
		for r := range n {
			require.Equal(t, seen[0][r], seen[1][r], "run %d, rank %d of %d", i, r, n)
		}
	}
}
