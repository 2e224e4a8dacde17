package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// C1, C4: a rank that leaves Guard by an error corrupts the communicator for all, and waits for no
// other rank. From then on every operation on the communicator ends with the same error.
func TestC1Guard(t *testing.T) {
	leave := map[string]func(){
		"panic":  func() { panic("boom") },
		"goexit": runtime.Goexit,
		"thrown": func() { mpicx.Throw(&placeError{1, 1}) },
	}
	messages := map[string]string{"panic": "panic: boom", "goexit": mpicx.ErrGoexit.Error(), "thrown": "thrown at place 1 of rank 1"}
	for name, fn := range inOrder(leave) {
		t.Run(name, func(t *testing.T) {
			mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 1 {
					how, err := outcome(func() error {
						return world.Guard(ctx, func(context.Context) error { fn(); return nil })
					})
					switch name {
					case "panic":
						if how != "boom" {
							return fmt.Errorf("the panic went on as %v", how)
						}
					case "goexit":
						if how != "Goexit" {
							return fmt.Errorf("%v %v", err, how)
						}
					default:
						if e, is := errors.AsType[*placeError](err); !is || e.rank != 1 {
							return fmt.Errorf("Guard returned %v", err)
						}
					}
				}
				first := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)
				if err := corruption(first, 1); err != nil {
					return err
				}
				if m := first.(*mpicx.CommCorruptedError).Failures[0].Message; m != messages[name] {
					return fmt.Errorf("message %q", m)
				}
				for i, f := range []future.Waiter{mpicx.Send(world, []int{1}, 0, 1), world.Barrier(), world.Dup(), world.Split(0, 0), world.SplitShared(0), mpicx.AllgatherValue(world, 1)} {
					if err := f.Wait(ctx); err != first {
						return fmt.Errorf("operation %d: %v", i, err)
					}
				}
				if err := world.SignalError(ctx, 1); err != first || world.Err() != first {
					return fmt.Errorf("SignalError %v, Err %v", err, world.Err())
				}
				if err := world.Try(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) }); err != first {
					return fmt.Errorf("Try %v", err)
				}
				return world.Close(ctx)
			})
		})
	}
}

// C2: a corruption wins over a propagation under way, at every rank.
// What a rank sends after it has unwound reaches nobody, though it may be faster than
// the error.
func TestC1NothingAfterwards(t *testing.T) {
	const rounds = 100
	for range rounds {
		run(t, 4, func(ctx context.Context, world *mpicx.Comm) (any, error) {
			var err error
			switch got := []int{0}; world.Rank() {
			case 3:
				_ = world.Guard(ctx, func(context.Context) error { return errors.New("unwound") })
				err = mpicx.Send(world, got, 1, 0).Wait(ctx)
			case 1:
				err = mpicx.Recv(world, got, 3, 0).Wait(ctx)
			default:
				err = world.Barrier().Wait(ctx)
			}
			if !corrupted(err) {
				return nil, fmt.Errorf("rank %d got %v", world.Rank(), err)
			}
			return nil, nil
		})
	}
}

func TestC2CorruptionWins(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		var err error
		switch world.Rank() {
		case 0, 3:
			err = world.SignalError(ctx, 5)
		case 2: // computes until then
			time.Sleep(time.Second)
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("unwound") })
			err = world.Barrier().Wait(ctx)
		default:
			err = world.Barrier().Wait(ctx)
		}
		return corruption(err, 2)
	})
}

// If another rank corrupts the communicator, the others are not told of an error that a rank has
// signalled in the same round. Run returns it.
func TestC2OwnErrorIsNotLost(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			errLocal := errors.New("no convergence")
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 2 {
					time.Sleep(time.Second)
					return errors.New("unwound")
				}
				err := world.Try(ctx, func(ctx context.Context) error {
					if world.Rank() == 1 {
						return errLocal
					}
					return world.Barrier().Wait(ctx)
				})
				require.NoError(t, corruption(err, 2))
				require.Equal(t, world.Rank() == 1, errors.Is(err, errLocal))
				return err
			}, mpicx.WithRanks(3), backend)
			require.ErrorContains(t, err, "rank 1: no convergence\nrank 2: unwound\nranks 0, 1: mpicx: communicator corrupted by rank 2: unwound")
		})
	})
}

// C3: the panic continues with its own stack. Run returns it when the peers have been told.
func TestC3PanicGoesOn(t *testing.T) {
	oneProcess(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		return world.Guard(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				explode()
			}
			return world.Barrier().Wait(ctx)
		})
	}, mpicx.WithRanks(3))
	p, is := errors.AsType[*mpicx.PanicError](err)
	require.True(t, is, "%v", err)
	require.Equal(t, 1, p.Rank)
	require.Equal(t, "boom", p.Value)
	require.Contains(t, string(p.Stack), "explode")
	require.Contains(t, string(p.Stack), "corruption_test.go")
	c, is := errors.AsType[*mpicx.CommCorruptedError](err)
	require.True(t, is)
	require.NoError(t, corruption(c, 1))
	require.Equal(t, "panic: boom", c.Failures[0].Message)
	lines := strings.Split(err.Error(), "\n")
	require.True(t, strings.HasPrefix(lines[0], "rank 1: mpicx: rank 1 panicked: boom"), lines[0])
	require.Equal(t, "ranks 0, 2: mpicx: communicator corrupted by rank 1: panic: boom", lines[len(lines)-1])
}

func explode() { panic("boom") }

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
