package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runtime"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// P8: a rank that does nothing in Guard but wait for its context learns that a peer has unwound,
// whether it has entered the Guard or not. An error that it has heard of before ends no Guard.
func TestACorruptionEndsTheContextOfGuard(t *testing.T) {
	oneProcess(t)
	for n, who := range product([]int{2, 3, 4}, []int{0, 1}) {
		for signals := range n {
			runBoth(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				err := world.Guard(ctx, func(ctx context.Context) error {
					switch world.Rank() {
					case who:
						if signals != who {
							time.Sleep(time.Second) // of the bubble: all have heard of the signal
						}
						return errors.New("it unwinds")
					case signals:
						return world.SignalError(ctx, 5)
					}
					<-ctx.Done()
					return ctx.Err()
				})
				if world.Rank() != who && !corrupted(err) {
					return fmt.Errorf("rank %d: got %w", world.Rank(), err)
				}
				return nil
			})
		}
	}
}

// D2: a rank whose TryAll waits for the verdict of a sibling says no before. Another that
// has said yes joins no round, so that each would wait for the other.
func TestTryAllInATryOnASibling(t *testing.T) {
	oneProcess(t)
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		sibling, part := dup(ctx, world), world.Split(world.Rank()%2, 0).MustGet(ctx)
		err := sibling.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				settle() // the others are in their TryAll
				return errors.New("lost")
			}
			return part.TryAll(ctx, func(ctx context.Context) error {
				if world.Rank() == 0 {
					<-ctx.Done()
					settle() // rank 2 waits for this one
				}
				return nil
			})
		})
		return messagesAre(err, "lost")
	})
}

// stopping is a logger that stops when rank 0 learns of a death.
type stopping struct {
	slog.Handler
	reached, release chan struct{}
}

func (s *stopping) Enabled(context.Context, slog.Level) bool { return true }

func (s *stopping) Handle(_ context.Context, r slog.Record) error {
	stop := r.Message == "died"
	r.Attrs(func(a slog.Attr) bool {
		stop = stop && (a.Key != "rank" || a.Value.Int64() == 0)
		return true
	})
	if stop {
		close(s.reached)
		<-s.release
	}
	return nil
}

// No lock is held while a death is logged: meanwhile other goroutines of the rank acknowledge
// it, and begin to receive (F1).
func TestDeathIsLoggedWithoutLocks(t *testing.T) {
	if processes != nil {
		t.Skip("another process dies: nothing of this test is in it")
	}
	log := &stopping{slog.DiscardHandler, make(chan struct{}), make(chan struct{})}
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() == 1 {
			_ = mpicx.Recv(world, []int{0}, 0, 0).Wait(ctx)
			inject.Die(world)
		}
		_ = mpicx.Send(world, []int{0}, 1, 0).Wait(ctx)
		before := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1)
		<-log.reached
		mpicx.Throw(expect(before.Wait(ctx), mpicx.ErrProcFailedPending))
		during := mpicx.Recv(world, []int{0}, mpicx.AnySource, 2)
		mpicx.Throw(expect(during.Wait(ctx), mpicx.ErrProcFailedPending))
		if n := world.AckFailed(1); n != 1 {
			return fmt.Errorf("%d deaths are acknowledged", n)
		}
		close(log.release)
		for tag, f := range map[int]interface{ Wait(context.Context) error }{1: before, 2: during} {
			mpicx.Throw(errors.Join(mpicx.Send(world, []int{1}, 0, tag).Wait(ctx), f.Wait(ctx)))
		}
		return nil
	}, mpicx.WithRanks(2), mpicx.WithLogger(slog.New(log)), hook.Backend[mpicx.Option]("ulfm")))
}

// C1, C4: a rank that leaves Guard by an error corrupts the communicator for all, and waits for no
// other rank. From then on every operation on the communicator ends with the same error.
func TestC1Guard(t *testing.T) {
	own := &placeError{1, 1}
	for name, test := range inOrder(map[string]struct {
		leave   func()
		how     any // what goes on at rank 1
		err     error
		message string
	}{
		"panic":  {func() { panic("boom") }, "boom", nil, "panic: boom"},
		"goexit": {runtime.Goexit, "Goexit", nil, mpicx.ErrGoexit.Error()},
		"thrown": {func() { mpicx.Throw(own) }, nil, own, own.Error()},
	}) {
		t.Run(name, func(t *testing.T) {
			mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 1 {
					how, err := outcome(func() error {
						return world.Guard(ctx, func(context.Context) error { test.leave(); return nil })
					})
					require.Equal(t, test.how, how)
					require.ErrorIs(t, err, test.err)
				}
				first := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)
				mpicx.Throw(corruption(first, 1))
				require.Equal(t, test.message, first.(*mpicx.CommCorruptedError).Failures[0].Message)
				for i, f := range []future.Waiter{mpicx.Send(world, []int{1}, 0, 1), world.Barrier(), world.Dup(), world.Split(0, 0), world.SplitShared(0), mpicx.AllgatherValue(world, 1)} {
					require.Same(t, first, f.Wait(ctx), "operation %d", i)
				}
				for _, err := range []error{world.SignalError(ctx, 1), world.Err(), world.Try(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) })} {
					require.Same(t, first, err)
				}
				return world.Close(ctx)
			})
		})
	}
}

// If another rank corrupts the communicator, the others are not told of an error that a rank has
// signalled in the same round. Run returns it.
func TestC2OwnErrorIsNotLost(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			errLocal := errors.New("no convergence")
			require.ErrorContains(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 2 {
					time.Sleep(time.Second)
					return errors.New("unwound")
				}
				err := world.Try(ctx, fails(world, 1, errLocal))
				require.NoError(t, corruption(err, 2))
				require.Equal(t, world.Rank() == 1, errors.Is(err, errLocal))
				return err
			}, mpicx.WithRanks(3), backend), "rank 1: no convergence\nrank 2: unwound\nranks 0, 1: mpicx: communicator corrupted by rank 2: unwound")
		})
	})
}

// Run has the error of a rank that ended by runtime.Goexit.
func TestRunTellsOfGoexit(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		require.ErrorIs(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				runtime.Goexit()
			}
			_ = world.Barrier().Wait(ctx)
			return nil
		}, mpicx.WithRanks(2), backend), mpicx.ErrGoexit)
	})
}
