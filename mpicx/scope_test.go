package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A deadline that is set inside of a Try whose context an error has ended still ends a Wait.
func TestADeadlineInsideOfAnInterruptedTry(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		return world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				_ = world.Try(ctx, func(context.Context) error { return errors.New("inner") })
				world.Barrier().MustWait(ctx)
				return mpicx.Send(world, []int{1}, 0, 99).Wait(ctx)
			}
			<-ctx.Done()
			type key struct{}
			ctx = context.WithValue(ctx, key{}, "kept")
			inner := world.Try(ctx, func(ctx context.Context) error {
				require.Equal(t, "kept", ctx.Value(key{}))
				return world.Barrier().Wait(ctx)
			})
			mpicx.Throw(isA[*mpicx.PropagatedError](inner))
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			message := mpicx.Recv(world, make([]int, 1), 1, 99)
			mpicx.Throw(expect(message.Wait(short), context.DeadlineExceeded))
			world.Barrier().MustWait(ctx)
			return message.Wait(ctx)
		})
	})
}

// Try on a communicator of which nobody can be told any more does not lose the error
// that its function ended with: a Try around it, on the communicator of that error, ends
// alike at all its ranks.
func TestTryOnARevokedCommunicatorKeepsTheError(t *testing.T) {
	oneProcess(t)
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child, cause := dup(ctx, world), errors.New("a cause")
		// Revoke would end a Dup that some rank is still in.
		mpicx.Throw(child.TryAll(ctx, succeeds))
		err := child.Try(ctx, func(ctx context.Context) error {
			mpicx.Throw(world.Revoke(ctx))
			if world.Rank() == 1 {
				return cause
			}
			return world.Try(ctx, func(context.Context) error {
				return child.Barrier().Wait(ctx) // the context of the Try on the world has ended
			})
		})
		mpicx.Throw(messagesAre(err, cause.Error()))
		err = world.Try(ctx, func(context.Context) error { return cause })
		mpicx.Throw(errors.Join(expect(err, mpicx.ErrRevoked), expect(err, cause)))
		return child.Barrier().Wait(ctx)
	})
}

// The context of a TryAll that ends while the votes are counted ends it at all ranks or at none.
func TestTryAllWhoseContextEnds(t *testing.T) {
	oneProcess(t)
	for k := range 1000 {
		var failed atomic.Int32
		mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			mine, cancel := context.WithCancel(ctx)
			defer cancel()
			err := world.TryAll(mine, func(context.Context) error {
				if world.Rank() == 0 {
					go func() { yield(k % 30); cancel() }()
				}
				return nil
			})
			if err != nil {
				failed.Add(1)
			}
			if err != nil && !isTold(err) {
				_ = world.Barrier().Wait(ctx) // where this rank is told what the others know
			}
			return nil
		})
		require.Contains(t, []int32{0, 3}, failed.Load())
	}
}

// What a rank begins after it has raised an error reaches nobody, and ends with the error (T1). The
// other rank's buffer shows it: that rank does not consent to the end of the round before.
func TestNothingIsSentAfterAnErrorIsRaised(t *testing.T) {
	oneProcess(t)
	send := func(c *mpicx.Comm, _ []int) future.Waiter { return mpicx.Send(c, []int{1}, 1-c.Rank(), 0) }
	synchronous := func(c *mpicx.Comm, _ []int) future.Waiter { return mpicx.Ssend(c, []int{1}, 1-c.Rank(), 0) }
	persistent := func(c *mpicx.Comm, _ []int) future.Waiter { return mpicx.SendInit(c, []int{1}, 1-c.Rank(), 0).Start() }
	receive := func(c *mpicx.Comm, buf []int) future.Waiter { return mpicx.Recv(c, buf, 1-c.Rank(), 0) }
	exchange := func(c *mpicx.Comm, buf []int) future.Waiter {
		return mpicx.Sendrecv(c, []int{1}, 1-c.Rank(), 0, buf, 1-c.Rank(), 0)
	}
	bcast := func(c *mpicx.Comm, buf []int) future.Waiter { return mpicx.Bcast(c, [][]int{buf, {1, 1}}[c.Rank()], 1) }
	gather := func(c *mpicx.Comm, buf []int) future.Waiter {
		return mpicx.Gather(c, []int{c.Rank()}, buf[:2-2*c.Rank()], 0)
	}
	for name, pair := range map[string]struct{ before, after beginner }{
		"Send": {receive, send}, "Ssend": {receive, synchronous}, "Start": {receive, persistent}, "Recv": {synchronous, receive},
		"Sendrecv": {exchange, exchange}, "Bcast": {bcast, bcast}, "Gather": {gather, gather},
	} {
		t.Run(name, func(t *testing.T) {
			bothBackends(t, func(t *testing.T, backend mpicx.Option) {
				nothingIsSentAfterAnError(t, backend, pair.before, pair.after)
			})
		})
	}
}

// A beginner begins an operation with the other rank, which may write to buf.
type beginner = func(c *mpicx.Comm, buf []int) future.Waiter

// nothingIsSentAfterAnError has rank 0 begin an operation, and rank 1 one when it has an error.
func nothingIsSentAfterAnError(t *testing.T, backend mpicx.Option, before, after beginner) {
	pending, begun := make(chan struct{}), make(chan struct{})
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		buf := make([]int, 2)
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				f := before(world, buf)
				close(pending)
				<-begun
				return f.Wait(ctx)
			}
			<-pending
			go world.Signal(ctx, errors.New("disk full"))
			<-ctx.Done()
			f := after(world, buf)
			close(begun)
			return f.Wait(ctx)
		})
		mpicx.Throw(messagesAre(err, "disk full"))
		require.Equal(t, []int{0, 0}, buf)
		return world.Barrier().Wait(ctx)
	}, mpicx.WithRanks(2), backend))
}

// What waits for the verdict after its rank has raised an error is named as what the program has begun.
func TestWithheldIsNamed(t *testing.T) {
	oneProcess(t)
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		_ = world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 { // it looks for no error until then
				time.Sleep(time.Minute)
				return nil
			}
			go world.Signal(ctx, errors.New("disk full"))
			<-ctx.Done()
			for name, f := range map[string]future.Waiter{"Barrier": world.Barrier(), "Recv": mpicx.Recv(world, []int{0}, 0, 1)} {
				short, cancel := context.WithTimeout(context.Background(), time.Second)
				err := f.Wait(short)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, name+" on world")
			}
			return nil
		})
		return world.Barrier().Wait(ctx)
	})
}

// What a function returns may wrap the scope's error and the end of its context, or be joined with
// them: errors.Is finds the rest, and not that a context has ended (T2).
func TestOwnErrorAroundOthers(t *testing.T) {
	for name, around := range map[string]func(err, end error) error{
		"wrapped":        func(err, end error) error { return fmt.Errorf("%w: %w (%w)", errClose, err, end) },
		"joined":         func(err, end error) error { return errors.Join(err, end, errClose) },
		"inside":         func(err, end error) error { return fmt.Errorf("%w: %w", errClose, errors.Join(end, err)) },
		"end, joined":    func(_, end error) error { return errors.Join(end, errClose) },
		"end, explained": func(_, end error) error { return fmt.Errorf("step 3: %w", errors.Join(errClose, end)) },
		"end, in a text": func(_, end error) error { return fmt.Errorf("%w, and %w", end, errClose) },
	} {
		runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				if world.Rank() == 0 {
					return errors.New("disk full")
				}
				err := world.Barrier().Wait(ctx)
				<-ctx.Done()
				return around(err, ctx.Err())
			})
			mpicx.Throw(messagesAre(err, "disk full"))
			require.Equal(t, world.Rank() == 1, errors.Is(err, errClose), name)
			if strings.HasPrefix(name, "end") {
				require.EqualError(t, err, "mpicx: error propagated from rank 0: disk full", name)
				require.NotErrorIs(t, err, context.Canceled, name)
			}
			return nil
		})
	}
}

// What an error of another communicator has ended a Wait for is excused: the program was told why
// it stays pending, and that another rank never calls it is no news. Close gives its communicator
// up.
func TestWaitThatAnotherErrorInterrupts(t *testing.T) {
	for _, wait := range []func(context.Context, *mpicx.Comm) error{
		barrier,
		func(ctx context.Context, c *mpicx.Comm) error { return c.Dup().Wait(ctx) },
		func(ctx context.Context, c *mpicx.Comm) error { return c.Close(ctx) },
	} {
		runBothTimes(t, 30, 5, func(ctx context.Context, world *mpicx.Comm) error {
			apart := dup(ctx, world)
			err := apart.TryAll(ctx, func(ctx context.Context) error {
				inner := world.Dup().MustGet(ctx)
				if world.Rank() == 2 {
					return errors.New("disk full")
				}
				return wait(ctx, inner)
			})
			return isA[*mpicx.PropagatedError](err)
		})
	}
}

// A rank's error is in the round that its Try has decided on, though another goroutine of the rank
// may consent to the end of that round at any moment.
func TestInnerTryInAGoroutine(t *testing.T) {
	oneProcess(t)
	var all [2][2]string // by TryAll and rank
	runBothTimes(t, 100, 2, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		for k := range all {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				if me == k {
					return world.Signal(ctx, fmt.Errorf("signal %d", k))
				}
				return besideAnInnerTry(ctx, world, k == 0)
			})
			mpicx.Throw(isA[*mpicx.PropagatedError](err))
			all[k][me] = told(err)
		}
		world.Barrier().MustWait(ctx)
		require.Equal(t, all[0][0], all[0][1])
		require.Equal(t, all[1][0], all[1][1])
		return world.Barrier().Wait(ctx)
	})
}

// besideAnInnerTry has a goroutine enter a Try: that fails, and this one waits until an error ends
// that; or it waits there, and this one fails then.
func besideAnInnerTry(ctx context.Context, world *mpicx.Comm, innerFails bool) error {
	never := func(ctx context.Context) error { return mpicx.Recv(world, []int{0}, 1-world.Rank(), 77).Wait(ctx) }
	fail := func(context.Context) error { return errors.New("fails") }
	inner := make(chan error)
	if innerFails {
		go func() { inner <- world.Try(ctx, fail) }()
		err := never(ctx)
		<-inner
		return err
	}
	go func() { inner <- world.Try(ctx, never) }()
	<-inner
	return fail(ctx)
}

// A rank whose function gives up because an inner error has ended its context, before
// it has entered the inner Try, has failed in the outer Try: all are told.
func TestWhatTryReturnsAllHave(t *testing.T) {
	oneProcess(t)
	var outer [3]error
	runBothTimes(t, 20, 3, func(ctx context.Context, world *mpicx.Comm) error {
		outer[world.Rank()] = world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				<-ctx.Done() // it computes
				return ctx.Err()
			}
			inner := world.Try(ctx, func(ctx context.Context) error { return &placeError{world.Rank(), 1} })
			mpicx.Throw(isA[*mpicx.PropagatedError](inner))
			return world.Barrier().Wait(ctx)
		})
		world.Barrier().MustWait(ctx)
		for _, err := range outer {
			require.Equal(t, told(outer[0]), told(err))
			require.Len(t, err.(*mpicx.PropagatedError).Failures, 2) // the inner error, again
		}
		return world.Barrier().Wait(ctx)
	})
}

// The ranks that leave a child by its error, and their parent's Try with that, are
// told by one error of the parent.
func TestAChildsErrorLeavesTheParentAsOne(t *testing.T) {
	oneProcess(t)
	runBothTimes(t, 200, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				return child.SignalError(ctx, 44)
			}
			return child.Barrier().Wait(ctx)
		})
		mpicx.Throw(failedAt(err, 0, 1, 2)) // the parent's
		return world.TryAll(ctx, succeeds)
	})
}

// A nested Try handles its error, and the outer one continues with a context that has not ended. An
// error that wraps the one which the inner Try has returned is a new one.
func TestNestedTry(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			inner := world.Try(ctx, func(ctx context.Context) error {
				if world.Rank() == 1 {
					settle()
					return &placeError{1, 7}
				}
				err := world.Barrier().Wait(ctx)
				require.Error(t, ctx.Err(), "the inner context")
				return err
			})
			mpicx.Throw(propagated(inner, 107))
			require.NoError(t, ctx.Err(), "the outer context")
			mpicx.Throw(exchange(ctx, world, 0))
			if world.Rank() == 2 {
				settle()
				return fmt.Errorf("recovery failed: %w", inner)
			}
			return world.Barrier().Wait(ctx)
		})
		mpicx.Throw(failedAt(err, 2))
		require.ErrorContains(t, err, "recovery failed: mpicx: error propagated from rank 1")
		return exchange(ctx, world, 0)
	})
}
