package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Each of these failed before what a rank knows of errors was in one place.

// bothBackends runs a test with each.
func bothBackends(t *testing.T, test func(t *testing.T, backend mpicx.Option)) {
	for _, name := range []string{"blackchannel", "ulfm"} {
		t.Run(name, func(t *testing.T) { test(t, hook.Backend(name).(mpicx.Option)) })
	}
}

// dup returns a duplicate of world that all ranks have: no error finds one of them in
// Dup any more.
func dup(ctx context.Context, world *mpicx.Comm) (child *mpicx.Comm) {
	err := world.TryAll(ctx, func(ctx context.Context) (err error) {
		child, err = world.Dup().Get(ctx)
		return err
	})
	mpicx.Throw(err)
	return child
}

// P2: a rank that has left TryAll, and was told nothing, raises with the others.
func TestTryAllTellsOrLeavesOut(t *testing.T) {
	oneProcess(t)
	rounds := 4000
	if testing.Short() || buildtags.Race {
		rounds = 500
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
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
		}, mpicx.WithRanks(2), backend)
		require.NoError(t, err)
	})
}

// A context that ends because of an error of an outer scope's communicator, inside of
// a Guard on another, says so by that error.
func TestAnInternalErrorNeverLeaks(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for i := range 50 {
			var mu sync.Mutex
			var got []error
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				child := dup(ctx, world)
				_ = world.Try(ctx, func(ctx context.Context) error {
					return child.Guard(ctx, func(ctx context.Context) error {
						short, cancel := context.WithTimeout(ctx, time.Hour)
						defer cancel()
						if world.Rank() == i%3 {
							return world.SignalError(short, 7)
						}
						err := child.Barrier().Wait(short)
						mu.Lock()
						got = append(got, err)
						mu.Unlock()
						return err
					})
				})
				return nil
			}, mpicx.WithRanks(3), backend)
			require.NoError(t, err)
			require.Len(t, got, 2)
			for _, err := range got {
				require.NotErrorIs(t, err, context.Canceled)
				_, propagated := errors.AsType[*mpicx.PropagatedError](err)
				_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
				require.True(t, propagated || corrupted, "%v", err)
			}
		}
	})
}

// A rank whose function gives up because an inner error has ended its context, before
// it has entered the inner Try, has failed in the outer Try: all are told.
func TestWhatTryReturnsAllHave(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for range 20 {
			const n = 3
			var outer [n]error
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				outer[world.Rank()] = world.Try(ctx, func(ctx context.Context) error {
					if world.Rank() == 0 {
						<-ctx.Done() // it computes
						return ctx.Err()
					}
					inner := world.Try(ctx, func(ctx context.Context) error { return &placeError{world.Rank(), 1} })
					if _, ok := errors.AsType[*mpicx.PropagatedError](inner); !ok {
						return inner
					}
					return world.Barrier().Wait(ctx)
				})
				return nil
			}, mpicx.WithRanks(n), backend)
			require.NoError(t, err)
			for _, err := range outer {
				require.Equal(t, told(outer[0]), told(err))
				p, ok := errors.AsType[*mpicx.PropagatedError](err)
				require.True(t, ok, "%v", err)
				require.Len(t, p.Failures, 1)
				require.Zero(t, p.Failures[0].Rank)
			}
			require.ErrorIs(t, outer[0], context.Canceled)
		}
	})
}

// A deadline that is set inside of a Try whose context an error has ended still ends
// a Wait.
func TestADeadlineInsideOfAnInterruptedTry(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				_ = world.Try(ctx, func(context.Context) error { return errors.New("inner") })
				world.Barrier().MustWait(ctx)
				return mpicx.Send(world, []int{1}, 0, 99).Wait(ctx)
			}
			<-ctx.Done()
			type key struct{}
			ctx = context.WithValue(ctx, key{}, "kept")
			inner := world.Try(ctx, func(ctx context.Context) error {
				if ctx.Value(key{}) != "kept" {
					return errors.New("the values of the context are lost")
				}
				return world.Barrier().Wait(ctx)
			})
			if _, ok := errors.AsType[*mpicx.PropagatedError](inner); !ok {
				return inner
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			message := mpicx.Recv(world, make([]int, 1), 1, 99)
			if late := message.Wait(short); !errors.Is(late, context.DeadlineExceeded) {
				return fmt.Errorf("the deadline: %w", late)
			}
			world.Barrier().MustWait(ctx)
			return message.Wait(ctx)
		})
		return err
	})
}

// Close of a corrupted child leaves an error of the parent for the parent.
func TestCloseDoesNotSwallowTheParentsError(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for range 20 {
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				child := dup(ctx, world)
				_ = child.Guard(ctx, func(ctx context.Context) error {
					if world.Rank() == 0 {
						return errors.New("rank 0 leaves")
					}
					return child.Barrier().Wait(ctx)
				})
				var signalled error
				if world.Rank() == 0 {
					for r := 1; r < world.Size(); r++ {
						mpicx.Recv(world, make([]int, 1), r, 0).MustWait(ctx)
					}
					signalled = world.SignalError(ctx, 5)
				} else {
					mpicx.Send(world, []int{1}, 0, 0) // a Wait might find the signal (P7)
					for world.Err() == nil {
						runtime.Gosched()
					}
				}
				if err := child.Close(ctx); err != nil {
					return fmt.Errorf("Close: %w", err)
				}
				if world.Rank() != 0 {
					signalled = world.Barrier().Wait(ctx)
				}
				if p, ok := errors.AsType[*mpicx.PropagatedError](signalled); !ok || p.Failures[0].Code != 5 {
					return fmt.Errorf("on the world: %w", signalled)
				}
				return nil
			}, mpicx.WithRanks(3), backend)
			require.NoError(t, err)
		}
	})
}

// With the black channel the error handler changes nothing: who leaves tells.
func TestErrorsReturnWithTheBlackChannel(t *testing.T) {
	oneProcess(t)
	for _, leave := range []func() error{
		func() error { return errors.New("lost") },
		func() error { panic("lost") },
		func() error { runtime.Goexit(); return nil },
	} {
		heard := make([]error, 3)
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			world.SetErrhandler(mpicx.ErrorsReturn)
			if world.Rank() == 1 {
				return leave()
			}
			heard[world.Rank()] = mpicx.Recv(world, make([]int, 1), 1, 0).Wait(ctx)
			return nil
		}, mpicx.WithRanks(3), hook.Backend("blackchannel").(mpicx.Option))
		require.Error(t, err) // of rank 1
		for _, r := range []int{0, 2} {
			_, ok := errors.AsType[*mpicx.CommCorruptedError](heard[r])
			require.True(t, ok, "rank %d: %v", r, heard[r])
		}
	}
}

// A verdict that a rank leaves by is no part of the next one, as far as types go: the
// loop of the README does the same at all ranks.
func TestAVerdictHidesTheOneBefore(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		cause := &placeError{1, 2}
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			left := world.Guard(ctx, func(ctx context.Context) error {
				err := world.Try(ctx, func(ctx context.Context) error {
					if world.Rank() == 1 {
						return cause
					}
					return world.Barrier().Wait(ctx)
				})
				if world.Rank() == 1 {
					return err // it gives up
				}
				return world.Barrier().Wait(ctx)
			})
			if world.Rank() == 1 {
				left = world.Barrier().Wait(ctx)
				if !errors.Is(left, cause) {
					return fmt.Errorf("the cause is not found in %w", left)
				}
			}
			if _, ok := errors.AsType[*mpicx.CommCorruptedError](left); !ok {
				return fmt.Errorf("not corrupted: %w", left)
			}
			if _, ok := errors.AsType[*mpicx.PropagatedError](left); ok {
				return fmt.Errorf("the corruption is taken for what it was raised by: %w", left)
			}
			return nil
		}, mpicx.WithRanks(3), backend)
		require.NoError(t, err)
	})
}

// The ranks that leave a child by its error, and their parent's Try with that, are
// told by one error of the parent.
func TestAChildsErrorLeavesTheParentAsOne(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for range 200 {
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				var child *mpicx.Comm
				mpicx.Throw(world.TryAll(ctx, func(ctx context.Context) (err error) {
					child, err = world.Split(0, world.Rank()).Get(ctx)
					return err
				}))
				err := world.TryAll(ctx, func(ctx context.Context) error {
					if world.Rank() == 1 {
						return child.SignalError(ctx, 44)
					}
					return child.Barrier().Wait(ctx)
				})
				if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != world.Size() {
					return fmt.Errorf("the parent's: %w", err)
				}
				return world.TryAll(ctx, func(context.Context) error { return nil })
			}, mpicx.WithRanks(3), backend)
			require.NoError(t, err)
		}
	})
}

// An operation that is begun before the corruption of its communicator was told ends
// with that, and meets nothing of the ranks that repair it.
func TestRepairsMeetOnlyRepairs(t *testing.T) {
	oneProcess(t)
	for range 100 {
		var sizes sync.Map
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			child := dup(ctx, world)
			if world.Rank() == 0 { // busy in the parent
				mpicx.Recv(world, make([]int, 1), 1, 0).MustWait(ctx)
				_, err := child.Agree(1).Get(ctx)
				if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok {
					return fmt.Errorf("Agree: %w", err)
				}
			} else {
				_ = child.Guard(ctx, func(ctx context.Context) error {
					if world.Rank() == 1 {
						return errors.New("rank 1 leaves")
					}
					return child.Barrier().Wait(ctx)
				})
				if world.Rank() == 1 {
					mpicx.Send(world, []int{1}, 0, 0).MustWait(ctx)
				}
			}
			living, err := child.Shrink().Get(ctx)
			if err != nil {
				return fmt.Errorf("Shrink: %w", err)
			}
			sizes.Store(world.Rank(), living.Size())
			return nil
		}, mpicx.WithRanks(3), hook.Backend("ulfm").(mpicx.Option))
		require.NoError(t, err)
		sizes.Range(func(rank, size any) bool {
			require.Equal(t, 3, size, "rank %d", rank)
			return true
		})
	}
}

// Run has the error of a rank that ended by runtime.Goexit.
func TestRunTellsOfGoexit(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				runtime.Goexit()
			}
			_ = world.Barrier().Wait(ctx)
			return nil
		}, mpicx.WithRanks(2), backend)
		require.ErrorIs(t, err, mpicx.ErrGoexit)
	})
}

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
			for signals := range n {
				for who := range n {
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
		}
	})
}

// waitInGuard has n ranks wait for the end of a Guard's context, by which who unwinds,
// each once first has returned nil.
func waitInGuard(t *testing.T, n, who int, backend mpicx.Option, first func(*mpicx.Comm) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
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
		}, mpicx.WithRanks(n), backend)
		require.NoError(t, err)
	})
}

// A rank that has signalled an error, and was told another by that, has its own still to
// come. Close waits for it: a peer that met it there would have closed the communicator.
func TestCloseWaitsForWhatWasRaised(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			first, second := errors.New("the first"), errors.New("the second")
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				child := dup(ctx, world)
				var told error
				if world.Rank() == 0 {
					told = child.Signal(ctx, first)
					world.Barrier().MustWait(ctx)
				} else {
					world.Barrier().MustWait(ctx) // the first is resolved meanwhile
					told = child.Signal(ctx, second)
				}
				if p, ok := errors.AsType[*mpicx.PropagatedError](told); !ok || p.Failures[0].Message != first.Error() {
					return fmt.Errorf("Signal: %w", told)
				}
				told = child.Close(ctx)
				if p, ok := errors.AsType[*mpicx.PropagatedError](told); !ok || p.Failures[0].Message != second.Error() {
					return fmt.Errorf("Close: %w", told)
				}
				return child.Close(ctx)
			}, mpicx.WithRanks(2), backend, hook.Transport(func(t transport.Comm) transport.Comm { return slowChannel{t} }).(mpicx.Option))
			require.NoError(t, err)
		})
	})
}

// slowChannel has what error channels send come later than all that programs send: in a
// bubble of testing/synctest.
type slowChannel struct{ transport.Comm }

func (c slowChannel) Sub(name transport.Name, members []int, done func(transport.Comm, error)) {
	c.Comm.Sub(name, members, func(made transport.Comm, err error) {
		if err == nil {
			made = slowChannel{made}
		}
		done(made, err)
	})
}

func (c slowChannel) Listen(l transport.Listener) { c.Comm.Listen(&slowListener{Listener: l}) }

type slowListener struct {
	transport.Listener
	taken atomic.Int64
}

func (l *slowListener) Take(from int, payload []byte) {
	time.AfterFunc(time.Millisecond+time.Duration(l.taken.Add(1)), func() { l.Listener.Take(from, payload) })
}

// Try on a communicator of which nobody can be told any more does not lose the error
// that its function ended with: a Try around it, on the communicator of that error, has what all
// its ranks have.
func TestTryOnARevokedCommunicatorKeepsTheError(t *testing.T) {
	oneProcess(t)
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child, cause := dup(ctx, world), errors.New("a cause")
		err := child.Try(ctx, func(ctx context.Context) error {
			if err := world.Revoke(ctx); err != nil {
				return err
			}
			if world.Rank() == 1 {
				return cause
			}
			return world.Try(ctx, func(ctx context.Context) error {
				return child.Barrier().Wait(ctx)
			})
		})
		if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != 1 || p.Failures[0].Message != cause.Error() {
			return fmt.Errorf("got %w", err)
		}
		err = world.Try(ctx, func(context.Context) error { return cause })
		if !errors.Is(err, mpicx.ErrRevoked) || !errors.Is(err, cause) {
			return fmt.Errorf("on the world: got %w", err)
		}
		return child.Barrier().Wait(ctx)
	})
}

// F2: without ErrorsReturn, an operation that outlives its communicator, and then the peer
// that it needs, ends with an error of its own: no rank is left to be told together.
func TestADeathAfterClose(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			pair, err := world.Split(world.Rank()%2, 0).Get(ctx)
			if err != nil {
				return err
			}
			pending := mpicx.Recv(pair, []int{0}, pair.Size()-1, 0)
			if err := pair.Close(ctx); err != nil || world.Rank() == 2 {
				return err
			}
			if world.Rank() == 1 { // it is not concerned
				return mpicx.Recv(world, []int{0}, 0, 0).Wait(ctx)
			}
			defer mpicx.Send(world, []int{0}, 1, 0)
			err = pending.Wait(ctx)
			if died, ok := errors.AsType[*mpicx.ProcFailedError](err); err == nil || ok && err == error(died) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}, mpicx.WithRanks(3), backend)
		require.NoError(t, err)
	})
}

// Revoke ends what is pending at a rank that has closed the communicator already: there
// Close has waited for nobody, because of the dead.
func TestRevokeAfterClose(t *testing.T) {
	oneProcess(t)
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		switch world.Rank() {
		case 0:
			if err := mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx); err != nil {
				return err
			}
			if err := child.Revoke(ctx); err != nil {
				return err
			}
		case 1:
			pending := mpicx.Recv(child, []int{0}, 0, 0)
			if err := child.Close(ctx); err != nil {
				return err
			}
			mpicx.Send(world, []int{1}, 0, 0).MustWait(ctx)
			if err := pending.Wait(ctx); !errors.Is(err, mpicx.ErrRevoked) {
				return fmt.Errorf("got %w", err)
			}
		case 2:
			mpicxtest.Die(world)
		}
		return nil
	})
}

// An error of a Try that this rank has left with nil is not one of an inner call of its
// next Try: that returns what all ranks have, and tells them nothing of its own.
func TestTryAfterATry(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		left, lost := make(chan struct{}), errors.New("lost")
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			told := world.Try(ctx, func(ctx context.Context) error {
				return world.Try(ctx, func(context.Context) error {
					if world.Rank() == 0 {
						<-left
						return lost
					}
					return nil
				})
			})
			if world.Rank() == 1 {
				if told != nil {
					return fmt.Errorf("the first Try: %w", told)
				}
				told = world.Try(ctx, func(ctx context.Context) error {
					close(left)
					<-ctx.Done()
					return ctx.Err()
				})
			}
			p, ok := errors.AsType[*mpicx.PropagatedError](told)
			if !ok || len(p.Failures) != 1 || p.Failures[0].Message != lost.Error() {
				return fmt.Errorf("got %w", told)
			}
			return world.Barrier().Wait(ctx)
		}, mpicx.WithRanks(2), backend)
		require.NoError(t, err)
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
			err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
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
				if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != 1 || p.Failures[0].Message != lost.Error() {
					return fmt.Errorf("got %w", err)
				}
				return nil
			}, mpicx.WithRanks(3), backend)
			require.NoError(t, err)
		})
	})
}

// An error names the operation that it is of, on a closed communicator too, and the option that
// is nil.
func TestErrorsNameWhatIsWrong(t *testing.T) {
	oneProcess(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		if err := child.Close(ctx); err != nil {
			return err
		}
		for op, err := range map[string]error{"Agree": child.Agree(1).Wait(ctx), "Shrink": child.Shrink().Wait(ctx)} {
			if m, ok := errors.AsType[*mpicx.MPIError](err); !ok || m.Op != op {
				return fmt.Errorf("%s: got %w", op, err)
			}
		}
		return nil
	}, mpicx.WithRanks(2))
	require.NoError(t, err)
	err = mpicx.Run(t.Context(), func(context.Context, *mpicx.Comm) error { return nil }, mpicx.WithRanks(1), nil)
	require.ErrorContains(t, err, "option 1 is nil")
}
