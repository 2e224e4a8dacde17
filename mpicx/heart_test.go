package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
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
				return world.Barrier().Wait(ctx)
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
			late := mpicx.Recv(world, make([]int, 1), 1, 99).Wait(short)
			if !errors.Is(late, context.DeadlineExceeded) {
				return fmt.Errorf("the deadline: %w", late)
			}
			return world.Barrier().Wait(ctx)
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
