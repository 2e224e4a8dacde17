package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Close of a corrupted child leaves an error of the parent for the parent.
func TestCloseDoesNotSwallowTheParentsError(t *testing.T) {
	oneProcess(t)
	runBothTimes(t, 20, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		_ = child.Guard(ctx, fails(child, 0, errors.New("rank 0 leaves")))
		var signalled error
		if world.Rank() == 0 {
			for range 2 {
				mpicx.Recv(world, make([]int, 1), mpicx.AnySource, 0).MustWait(ctx)
			}
			signalled = world.SignalError(ctx, 5)
		} else {
			mpicx.Send(world, []int{1}, 0, 0) // a Wait might find the signal (P7)
			untilError(world)
		}
		mpicx.Throw(explain(child.Close(ctx), "Close"))
		if world.Rank() != 0 {
			signalled = world.Barrier().Wait(ctx)
		}
		return explain(propagated(signalled, 5), "on the world")
	})
}

// A rank signals an error, and is told another one instead. Its own error is still under way. Close
// waits for it, because a peer that met this rank in Close would have closed the communicator.
func TestCloseWaitsForWhatWasRaised(t *testing.T) {
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		inBubble(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
			child, text := dup(ctx, world), "the first"
			if world.Rank() == 1 {
				world.Barrier().MustWait(ctx) // the first is resolved meanwhile
				text = "the second"
			}
			mpicx.Throw(messagesAre(child.Signal(ctx, errors.New(text)), "the first"))
			if world.Rank() == 0 {
				world.Barrier().MustWait(ctx)
			}
			mpicx.Throw(messagesAre(child.Close(ctx), "the second"))
			return child.Close(ctx)
		}, backend, hook.Transport[mpicx.Option](slowErrors))
	})
}

// slowErrors wraps a side whose error channels are slow.
func slowErrors(c transport.Comm) transport.Comm {
	return &listening{c, func(_ transport.Comm, l transport.Listener) transport.Listener { return &slowListener{Listener: l} }}
}

// slowListener has what error channels send come later than all that programs send: in a bubble.
type slowListener struct {
	transport.Listener
	taken atomic.Int64
}

func (l *slowListener) Take(from int, payload []byte) {
	time.AfterFunc(time.Millisecond+time.Duration(l.taken.Add(1)), func() { l.Listener.Take(from, payload) })
}

// F2: without ErrorsReturn, an operation that outlives its communicator, and then the peer
// that it needs, ends with an error of its own: no rank is left to be told together.
func TestADeathAfterClose(t *testing.T) {
	oneProcess(t)
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		pair := world.Split(world.Rank()%2, 0).MustGet(ctx)
		pending := mpicx.Recv(pair, []int{0}, pair.Size()-1, 0)
		mpicx.Throw(pair.Close(ctx))
		switch world.Rank() {
		case 0:
			defer mpicx.Send(world, []int{0}, 1, 0)
			err := pending.Wait(ctx)
			require.Error(t, err)
			_, bare := err.(*mpicx.ProcFailedError)
			require.False(t, bare, "%v", err)
		case 1: // it is not concerned
			return mpicx.Recv(world, []int{0}, 0, 0).Wait(ctx)
		}
		return nil
	})
}

// Revoke ends what is pending at a rank that has closed the communicator already: there
// Close has waited for nobody, because of the dead.
func TestRevokeAfterClose(t *testing.T) {
	oneProcess(t)
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		if world.Rank() < 2 { // rank 2 may leave dup before these do
			mpicx.Send(world, []int{1}, 2, 0).MustWait(ctx)
		}
		switch world.Rank() {
		case 0:
			mpicx.Recv(world, []int{0}, 1, 0).MustWait(ctx)
			mpicx.Throw(child.Revoke(ctx))
		case 1:
			pending := mpicx.Recv(child, []int{0}, 0, 0)
			mpicx.Throw(child.Close(ctx))
			mpicx.Send(world, []int{1}, 0, 0).MustWait(ctx)
			mpicx.Throw(expect(pending.Wait(ctx), mpicx.ErrRevoked))
		case 2:
			for r := range 2 {
				mpicx.Recv(world, []int{0}, r, 0).MustWait(ctx)
			}
			mpicxtest.Die(world)
		}
		return nil
	})
}

// Close in a scope of a communicator that the closed one is not derived from returns an error of
// that communicator, even if the closed one is corrupted meanwhile. Otherwise the program would
// count as told of an error that it has not seen.
func TestCloseDoesNotSwallowTheScopesError(t *testing.T) {
	oneProcess(t)
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		outer := dup(ctx, world)
		closed := world.Split(world.Rank()/2, 0).MustGet(ctx) // ranks 0 and 1; rank 2
		leave := func(context.Context) error { return errors.New("rank 1 leaves") }
		var err error
		switch world.Rank() {
		case 0:
			err = outer.Guard(ctx, closed.Close)
		case 1:
			_ = outer.Guard(ctx, leave)
			settle() // rank 0 waits for the verdict, and so for rank 2
			_ = closed.Guard(ctx, leave)
			return nil
		case 2:
			settle()
			settle()
			err = outer.Barrier().Wait(ctx)
		}
		return corruptionOf(err, outer)
	})
}

// A Close that has returned the corruption of a communicator that the closed one is derived from
// has told it: every later operation ends with it (C4), even if an older ancestor has an error
// then.
func TestC4AfterClose(t *testing.T) {
	oneProcess(t)
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		parent := dup(ctx, world)
		child := dup(ctx, parent)
		if world.Rank() == 1 {
			_ = parent.Guard(ctx, func(context.Context) error { return errors.New("rank 1 leaves") })
			mpicx.Recv(world, []int{0}, 0, 0).MustWait(ctx)
			_ = world.SignalError(ctx, 5)
			return nil
		}
		closing := child.Close(ctx)
		mpicx.Throw(corruptionOf(closing, parent))
		mpicx.Send(world, []int{1}, 1, 0) // a Wait could be told of the error that follows
		untilError(world)
		require.Equal(t, closing, child.Barrier().Wait(ctx))
		return propagated(world.Barrier().Wait(ctx), 5)
	})
}

// corruptionOf says that err is a corruption of c.
func corruptionOf(err error, c *mpicx.Comm) error {
	if k, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || !k.Of(c) {
		return fmt.Errorf("%s: got %w, expected a corruption of %v", caller(2), err, c)
	}
	return nil
}

// A counted side counts how many made of it are open.
type counted struct {
	transport.Comm
	open *atomic.Int64
}

func (c *counted) Sub(name transport.Name, members []int) (transport.Comm, error) {
	side, err := c.Comm.Sub(name, members)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &counted{side, c.open}, nil
}

func (c *counted) Close() error {
	c.open.Add(-1)
	return c.Comm.Close()
}

// kept runs a program, and returns how many sides the transport has for it in the end, but
// for those of the world's error channel.
func kept(t *testing.T, n int, backend string, fn func(context.Context, *mpicx.Comm) error) int {
	t.Helper()
	var open atomic.Int64
	require.NoError(t, mpicx.Run(t.Context(), fn, mpicx.WithRanks(n), hook.Backend[mpicx.Option](backend),
		hook.Transport[mpicx.Option](func(c transport.Comm) transport.Comm { return &counted{c, &open} })))
	return int(open.Load()) - n
}

// H6: nothing is kept of communicators that all ranks have closed, whatever was in between.
func TestClosedIsForgotten(t *testing.T) {
	oneProcess(t)
	programs := map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"dup":   func(ctx context.Context, world *mpicx.Comm) error { return world.Dup().MustGet(ctx).Close(ctx) },
		"split": func(ctx context.Context, w *mpicx.Comm) error { return w.Split(w.Rank()%2, 0).MustGet(ctx).Close(ctx) },
		"parent first": func(ctx context.Context, world *mpicx.Comm) error {
			parent := dup(ctx, world)
			child := dup(ctx, parent)
			return errors.Join(parent.Close(ctx), child.Close(ctx))
		},
		"after an error": func(ctx context.Context, world *mpicx.Comm) error {
			c := dup(ctx, world)
			return errors.Join(messagesAre(c.Try(ctx, fails(c, 0, errors.New("some"))), "some"), c.Close(ctx))
		},
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error {
			c := world.Split(0, 0).MustGet(ctx) // the end of the program would free a duplicate
			require.Error(t, c.Guard(ctx, fails(c, 0, errors.New("some"))))
			mpicx.Throw(isA[*mpicx.CommCorruptedError](c.Barrier().Wait(ctx))) // all have the verdict
			return c.Close(ctx)
		},
		"in a Try that fails": func(ctx context.Context, world *mpicx.Comm) error {
			return messagesAre(world.TryAll(ctx, func(ctx context.Context) error {
				d, s := dup(ctx, world), world.Split(world.Rank()%2, 0).MustGet(ctx)
				_ = world.Barrier().Wait(ctx) // all have made them
				if world.Rank() == 0 {
					_ = world.Signal(ctx, errors.New("some"))
				}
				return errors.Join(d.Close(ctx), s.Close(ctx))
			}), "some")
		},
	}
	for backend, n := range product([]string{"blackchannel", "ulfm"}, []int{1, 2, 3, 4, 5}) {
		for name, program := range programs {
			require.Zero(t, kept(t, n, backend, func(ctx context.Context, world *mpicx.Comm) error {
				for range 10 {
					mpicx.Throw(program(ctx, world))
				}
				return nil
			}), "%s, %s, %d ranks", name, backend, n)
		}
	}
}
