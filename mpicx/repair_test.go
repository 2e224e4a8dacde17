package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

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
		}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("blackchannel"))
		require.Error(t, err) // of rank 1
		for _, r := range []int{0, 2} {
			_, ok := errors.AsType[*mpicx.CommCorruptedError](heard[r])
			require.True(t, ok, "rank %d: %v", r, heard[r])
		}
	}
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
		}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("ulfm"))
		require.NoError(t, err)
		sizes.Range(func(rank, size any) bool {
			require.Equal(t, 3, size, "rank %d", rank)
			return true
		})
	}
}

// A rank leaves Guard by an error of its own, and the Try around that returns an older one,
// which all ranks have. Then it is told of the corruption as they are, and calls what they
// call.
func TestUnwoundInsideOfATryThatReturnsAnother(t *testing.T) {
	if mpicx.Backend != "ulfm" {
		t.Skip("repairs need the ULFM backend")
	}
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			switch world.Rank() {
			case 0:
				return world.SignalError(ctx, 12)
			case 1:
				settle()
				_ = world.Err() // it joins the round
				settle()
				return world.Guard(ctx, func(context.Context) error { return errors.New("unwinds") })
			}
			return world.Barrier().Wait(ctx)
		})
		if err := propagated(err, 12); err != nil {
			return fmt.Errorf("Try: %w", err)
		}
		if _, err := world.Agree(1).Get(ctx); !errors.As(err, new(*mpicx.CommCorruptedError)) {
			return fmt.Errorf("Agree: %w", err)
		}
		shrunk, err := world.Shrink().Get(ctx)
		if err != nil || shrunk.Size() != 3 {
			return fmt.Errorf("Shrink: %v, %w", shrunk, err)
		}
		return exchange(ctx, shrunk, 1)
	})
}
