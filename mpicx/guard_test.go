package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// P8: a rank that does nothing in Guard but wait for its context learns that a peer has
// unwound, whether it has entered the Guard or not.
func TestACorruptionEndsTheContextOfGuard(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for n := 2; n <= 5; n++ {
			for who := range n {
				for range 10 {
					waitInGuard(t, n, who, backend, func(*mpicx.Comm) error { return nil })
				}
			}
		}
	})
}

// P8: so does one that has heard before of a signal, which ends no Guard.
func TestACorruptionAfterASignalEndsTheContextOfGuard(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for n := 3; n <= 5; n++ {
			for signals, who := range product(indices(n), indices(n)) {
				if who == signals {
					continue
				}
				waitInGuard(t, n, who, backend, func(world *mpicx.Comm) error {
					switch world.Rank() {
					case signals:
						return world.SignalError(context.Background(), 5)
					case who:
						time.Sleep(time.Second) // of the bubble: all have heard of the signal
					}
					return nil
				})
			}
		}
	})
}

// waitInGuard has n ranks wait for the end of a Guard's context. Rank who ends it by unwinding.
// Each rank first calls first, and continues when that has returned nil.
func waitInGuard(t *testing.T, n, who int, backend mpicx.Option, first func(*mpicx.Comm) error) {
	t.Helper()
	inBubble(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Guard(ctx, func(ctx context.Context) error {
			switch err := first(world); {
			case err != nil:
				return err
			case world.Rank() == who:
				return errors.New("it unwinds")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if world.Rank() != who && !corrupted(err) {
			return fmt.Errorf("rank %d: got %v (%T)", world.Rank(), err, err)
		}
		return nil
	}, backend)
}

// P2: a rank that has left TryAll, and was told nothing, raises with the others.
func TestTryAllTellsOrLeavesOut(t *testing.T) {
	oneProcess(t)
	rounds := 4000
	if testing.Short() || buildtags.Race {
		rounds = 500
	}
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		for i := range rounds {
			err := world.TryAll(ctx, func(context.Context) error { return nil })
			if err != nil {
				return fmt.Errorf("round %d: TryAll: %w", i, err)
			}
			err = world.Try(ctx, func(context.Context) error { return errors.New("NaN") })
			if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != world.Size() {
				return fmt.Errorf("round %d: Try: %w", i, err)
			}
		}
		return nil
	})
}

// D2: a rank whose TryAll waits for the verdict of a sibling says no before. Another that
// has said yes joins no round, so that each would wait for the other.
func TestTryAllInATryOnASibling(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			lost := errors.New("lost")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of the bubble's time
			defer cancel()
			require.NoError(t, mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				sibling, part := dup(ctx, world), world.Split(world.Rank()%2, 0).MustGet(ctx)
				err := sibling.Try(ctx, func(ctx context.Context) error {
					if world.Rank() == 1 {
						time.Sleep(time.Millisecond) // the others are in their TryAll
						return lost
					}
					return part.TryAll(ctx, func(ctx context.Context) error {
						if world.Rank() == 0 {
							<-ctx.Done()
							time.Sleep(time.Millisecond) // rank 2 waits for this one
						}
						return nil
					})
				})
				return messagesAre(err, lost.Error())
			}, mpicx.WithRanks(3), backend))
		})
	})
}

// A rank calls a Barrier that the others forget. They wait in TryAll, and are told so, by whom the
// messages reach first; or the error that this rank has in the end.
func TestTryAllOfABarrierTooMany(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() > 0 {
				return nil
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := world.Barrier().Wait(short); err != nil {
				return errors.New("nobody comes")
			}
			return errors.New("the Barrier of one rank has ended")
		})
		require.Regexp(t, `rank 0: nobody comes|Barrier at rank 0, TryAll at rank \d`, fmt.Sprint(err))
		return nil
	})
}

// P8: while a rank computes and has not come to a Dup, or to a Dup of that, an
// error of what the others have made ends the contexts of their Try calls. The
// late rank, whichever it is, comes only once they all have ended; then it has the
// verdict as well. (The ulfm backend's Dup waits for all ranks.)
func TestP8WhileARankHasNotMadeItsSide(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	const n = 8
	for dups, late := range product([]int{1, 3}, indices(n)) {
		for _, signaller := range []int{(late + 1) % n, (late + 3) % n, (late + 6) % n} {
			t.Run(fmt.Sprintf("%d dups, rank %d late, %d signals", dups, late, signaller), func(t *testing.T) {
				var told sync.WaitGroup // contexts that have ended
				told.Add(n - 2)
				require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
					if world.Rank() == late {
						told.Wait() // it computes
					}
					comm := world
					for range dups {
						dup := comm.Dup().MustGet(ctx)
						comm = dup
					}
					err := comm.Try(ctx, func(ctx context.Context) error {
						switch world.Rank() {
						case late:
							return comm.Barrier().Wait(ctx)
						case signaller:
							return comm.SignalError(ctx, 7)
						}
						<-ctx.Done() // it computes
						told.Done()
						return ctx.Err()
					})
					mpicx.Throw(propagated(err, 7))
					return comm.Barrier().Wait(ctx)
				}, mpicx.WithRanks(n), hook.Backend[mpicx.Option]("blackchannel")))
			})
		}
	}
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
