package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	for n, ranks := range product([]int{2, 3, 4}, [][2]int{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, {1, 3}}) {
		who, signals := ranks[0], ranks[1]%n
		runBoth(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			err := world.Guard(ctx, func(ctx context.Context) error {
				switch me := world.Rank(); {
				case me == who && signals != who:
					settle() // all have heard of the signal
					fallthrough
				case me == who:
					return errors.New("it unwinds")
				case me == signals:
					return world.SignalError(ctx, 5)
				}
				<-ctx.Done()
				return ctx.Err()
			})
			require.True(t, world.Rank() == who || corrupted(err), "%v", err)
			return nil
		})
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
	oneProcess(t)
	log := &stopping{slog.DiscardHandler, make(chan struct{}), make(chan struct{})}
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() == 1 {
			mpicx.Recv(world, []int{0}, 0, 0).MustWait(ctx)
			inject.Die(world)
		}
		mpicx.Send(world, []int{0}, 1, 0).MustWait(ctx)
		before := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1)
		<-log.reached
		mpicx.Throw(expect(before.Wait(ctx), mpicx.ErrProcFailedPending))
		during := mpicx.Recv(world, []int{0}, mpicx.AnySource, 2)
		mpicx.Throw(expect(during.Wait(ctx), mpicx.ErrProcFailedPending))
		require.Equal(t, 1, world.AckFailed(1))
		close(log.release)
		return future.WaitAll(ctx, mpicx.Send(world, []int{1}, 0, 1), before, mpicx.Send(world, []int{1}, 0, 2), during)
	}, mpicx.WithRanks(2), mpicx.WithLogger(slog.New(log)), hook.Backend[mpicx.Option]("ulfm")))
}

// C1, C4: a rank that leaves Guard by an error corrupts the communicator for all, and waits for no
// other rank. From then on every operation on the communicator ends with the same error.
func TestC1Guard(t *testing.T) {
	own := &placeError{1, 1}
	for _, test := range []struct {
		leave   func()
		how     any // what continues at rank 1
		err     error
		message string
	}{
		{func() { panic("boom") }, "boom", nil, "panic: boom"},
		{runtime.Goexit, "Goexit", nil, mpicx.ErrGoexit.Error()},
		{func() { mpicx.Throw(own) }, nil, own, own.Error()},
	} {
		mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				how, err := outcome(func() error { return world.Guard(ctx, func(context.Context) error { test.leave(); return nil }) })
				require.Equal(t, test.how, how)
				require.ErrorIs(t, err, test.err)
			}
			first := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)
			mpicx.Throw(corruption(first, 1, test.message))
			for i, f := range []future.Waiter{mpicx.Send(world, []int{1}, 0, 1), world.Barrier(), world.Dup(), world.Split(0, 0), world.SplitShared(0), mpicx.AllgatherValue(world, 1)} {
				require.Same(t, first, f.Wait(ctx), "operation %d", i)
			}
			for _, err := range []error{world.SignalError(ctx, 1), world.Err(), world.Try(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) })} {
				require.Same(t, first, err)
			}
			return world.Close(ctx)
		})
	}
}

// If another rank corrupts the communicator, the others are not told of an error that a rank has
// signalled in the same round. Run returns it.
func TestC2OwnErrorIsNotLost(t *testing.T) {
	errLocal := errors.New("no convergence")
	jobs(t, 3, func(err error) {
		require.ErrorContains(t, err, "rank 1: no convergence\nrank 2: unwound\nranks 0, 1: mpicx: communicator corrupted by rank 2: unwound")
	}, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 2 {
			settle()
			return errors.New("unwound")
		}
		err := world.Try(ctx, fails(world, 1, errLocal))
		require.NoError(t, corruption(err, 2))
		require.Equal(t, world.Rank() == 1, errors.Is(err, errLocal))
		return err
	})
}

// A context that ends because of an error of an outer scope's communicator, inside of a Guard on
// another, says so by that error.
func TestAnInternalErrorNeverLeaks(t *testing.T) {
	oneProcess(t)
	for rank := range 3 {
		runBothTimes(t, 20, 3, func(ctx context.Context, world *mpicx.Comm) error {
			child := dup(ctx, world)
			inside := func(ctx context.Context) error {
				short, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				if world.Rank() == rank {
					return world.SignalError(short, 7)
				}
				err := child.Barrier().Wait(short)
				require.NotErrorIs(t, err, context.Canceled)
				require.True(t, isTold(err) || corrupted(err), "%v", err)
				return err
			}
			_ = world.Try(ctx, func(ctx context.Context) error { return child.Guard(ctx, inside) })
			return nil
		})
	}
}

// A verdict that a rank leaves by is no part of the next one, as far as types go: the
// loop of the README does the same at all ranks.
func TestAVerdictHidesTheOneBefore(t *testing.T) {
	oneProcess(t)
	cause := &placeError{1, 2}
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		left := world.Guard(ctx, func(ctx context.Context) error {
			err := world.Try(ctx, fails(world, 1, cause))
			return fails(world, 1, err)(ctx) // it gives up
		})
		if world.Rank() == 1 {
			left = world.Barrier().Wait(ctx)
			mpicx.Throw(expect(left, cause))
		}
		mpicx.Throw(isA[*mpicx.CommCorruptedError](left))
		require.False(t, isTold(left), "the corruption is taken for what it was raised by: %v", left)
		return nil
	})
}

// A corruption that ends a Wait because it has ended the context of a Guard on an ancestor is final for the
// communicator of that Wait, too (C4): an older ancestor's error is not told there any more.
func TestFinalForWhoWaitedInAGuard(t *testing.T) {
	oneProcess(t)
	runBothTimes(t, 200, 4, func(ctx context.Context, world *mpicx.Comm) error {
		var first, second error
		_ = world.TryAll(ctx, func(ctx context.Context) error {
			parent := dup(ctx, world)
			return parent.Guard(ctx, func(ctx context.Context) error {
				child := dup(ctx, parent)
				if world.Rank() == 0 {
					return child.Guard(ctx, func(context.Context) error { return errors.New("diverged") })
				}
				short, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				first = mpicx.Recv(child, []int{0}, 0, 1).Wait(short)
				second = mpicx.Recv(child, []int{0}, 0, 1).Wait(ctx)
				return second
			})
		})
		if corrupted(first) {
			mpicx.Throw(isA[*mpicx.CommCorruptedError](second))
		}
		return nil
	})
}

// A Guard whose context a corruption ends, inside a Try that has an error already, waits for nobody
// (C1). It returns that error, and not the end of its context, which would tell all ranks nothing.
func TestGuardInsideATryThatHasAnError(t *testing.T) {
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		var inGuard error
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				return errors.New("disk full")
			}
			_ = world.Barrier().Wait(ctx)
			inGuard = child.Guard(context.Background(), func(ctx context.Context) error {
				<-ctx.Done() // rank 0 corrupts the world
				return ctx.Err()
			})
			return inGuard
		})
		if world.Rank() == 0 {
			_ = world.Guard(ctx, func(context.Context) error { return err })
		} else {
			require.NotErrorIs(t, inGuard, context.Canceled)
			require.True(t, isTold(inGuard) || corrupted(inGuard), "%v", inGuard)
		}
		return nil
	})
}

var errDiverged, errOther = errors.New("the solver has diverged"), errors.New("another")

// diverged is an error with a value.
type diverged struct {
	Norm []float64
	rank int
}

func (*diverged) Error() string { return errDiverged.Error() }

func init() {
	mpicx.RegisterError(errDiverged)
	mpicx.RegisterErrorType[*diverged]()
	mpicx.RegisterErrorType[*diverged]() // once more is the same
}

// An error of a registered type is found at every rank, in what Try and Guard return: that of the
// lowest rank, and at the others a copy. One that is too long is found only where it was raised.
func TestRegisteredErrorTypes(t *testing.T) {
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		for _, length := range []int{2, 5000} {
			raised := &diverged{Norm: slices.Repeat([]float64{0.1}, length), rank: me}
			c := dup(ctx, world)
			one := c.TryAll(ctx, fails(c, 1, fmt.Errorf("in step 3: %w", raised)))
			two := c.Try(ctx, func(ctx context.Context) error { return fails(c, max(me, 1), raised)(ctx) })
			_ = c.Guard(ctx, fails(c, 1, raised))
			for i, err := range []error{one, two, c.Barrier().Wait(ctx)} {
				got, found := errors.AsType[*diverged](err)
				var ok bool
				switch raises := me == 1 || me == 2 && i == 1; {
				case length == 5000:
					ok = found == raises && strings.Contains(fmt.Sprintf("%+v", err), "not sent: *github.com/mpicx/go-mpicx/mpicx_test.diverged: its gob has 4")
				case me == 1:
					ok = got == raised
				default:
					ok = found && slices.Equal(got.Norm, raised.Norm) && got.rank == 0
				}
				if !ok {
					return fmt.Errorf("error %d of %d: %+v, %t, from %+v", i, length, got, found, err)
				}
			}
		}
		return nil
	})
	require.PanicsWithValue(t, "mpicx: RegisterErrorType: *mpicx.MPIError, expected an error of the program", mpicx.RegisterErrorType[*mpicx.MPIError])
	type diverged struct{ error }
	require.PanicsWithValue(t, "mpicx: RegisterErrorType: two types have the name *github.com/mpicx/go-mpicx/mpicx_test.diverged, expected different ones", mpicx.RegisterErrorType[*diverged])
	require.PanicsWithValue(t, "mpicx: RegisterErrorType: net.Error is an interface, expected the type of an error", mpicx.RegisterErrorType[net.Error])
}

// A registered error is found at every rank, in what Try and Guard return.
func TestRegisteredErrors(t *testing.T) {
	for _, sentinel := range []error{errDiverged, fs.ErrNotExist} {
		runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			raised := fmt.Errorf("in step 3: %w", sentinel)
			err := world.Try(ctx, fails(world, 1, raised))
			mpicx.Throw(first(failedAt(err, 1), expect(err, sentinel)))
			if errors.Is(err, errOther) || errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%w is what it is not", err)
			}
			dup := dup(ctx, world)
			_ = dup.Guard(ctx, fails(dup, 2, raised))
			return expect(dup.Barrier().Wait(ctx), sentinel)
		})
	}
	for name, bad := range map[string]error{
		"two errors have the text":       errors.New(errDiverged.Error()),
		"can be compared":                nil,
		"expected an error of the progr": context.Canceled,
		"expected a line of 128":         errors.New(strings.Repeat("x", 200)),
	} {
		func() {
			defer func() { require.Contains(t, recover(), name) }()
			mpicx.RegisterError(bad)
		}()
	}
	mpicx.RegisterError(errDiverged) // once more is the same
}
