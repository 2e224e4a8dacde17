package mpicxtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What Run does not hold against a program. What it does is among the programs of TestFailures.
func TestExcused(t *testing.T) {
	const nobody = 99
	for name, program := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"tested": func(_ context.Context, world *mpicx.Comm) error {
			_, err := mpicx.Send(world, []int{0}, nobody, 1).Test()
			require.Error(t, err)
			return nil
		},
		"one of several": func(ctx context.Context, world *mpicx.Comm) error {
			i, _ := future.WaitAny(ctx, mpicx.Recv(world, []int{0}, world.Rank(), 1), mpicx.Send(world, []int{0}, nobody, 1))
			require.Equal(t, 1, i)
			return mpicx.Send(world, []int{0}, world.Rank(), 1).Wait(ctx)
		},
		// The error takes the program away from where it would have waited, and P3 the message.
		"before an error": func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Send(world, []int{0}, nobody, 1)
			mpicx.Send(world, []int{0}, 1-world.Rank(), 1)
			mpicx.Send(world, make([]int, 1<<20), 1-world.Rank(), 1)
			signal(ctx, world)
			return nil
		},
		"returned before an error": func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				return mpicx.Recv(world, []int{0}, 0, 2).Wait(ctx) // and not what was sent before
			}
			mpicx.Send(world, []int{0}, 1, 1).MustWait(ctx)
			mpicx.Send(world, []int{0}, 1, 2).MustWait(ctx)
			time.Sleep(time.Second)
			_ = world.SignalError(ctx, 1)
			return nil
		},
		// Its futures have ended with the verdict (P4).
		"interrupted": func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Recv(world, []int{0}, 1-world.Rank(), 1)
			_ = world.SignalError(ctx, 1)
			return nil
		},
		"from an ancestor": func(ctx context.Context, world *mpicx.Comm) error {
			var dup *mpicx.Comm
			mpicx.Throw(world.TryAll(ctx, func(ctx context.Context) error {
				dup = world.Dup().MustGet(ctx)
				return nil
			}))
			mpicx.Send(dup, []int{0}, nobody, 1)
			mpicx.Send(dup, []int{0}, 1-dup.Rank(), 1)
			_ = world.SignalError(ctx, 1)
			return nil
		},
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Send(world, []int{0}, 1-world.Rank(), 1)
			mpicx.Send(world, []int{0}, nobody, 1)
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("bad input") })
			return nil
		},
		"cancelled": func(ctx context.Context, world *mpicx.Comm) error {
			require.True(t, mpicx.Cancel(mpicx.Recv(world, []int{0}, 1-world.Rank(), 1)))
			return world.Barrier().Wait(ctx)
		},
		// Nothing has failed, and it does not depend on who is faster.
		"posted and left": func(_ context.Context, world *mpicx.Comm) error {
			mpicx.Recv(world, []int{0}, 1-world.Rank(), 1)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { mpicxtest.Run(t, 2, program) })
	}
}

// Messages from and to dead ranks do not count as left behind.
func TestExcusedDeaths(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	mpicxtest.RunFaults(t, 3, "must kill 1 at operation 3", func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() == 1 {
			for range 3 { // the last is the third operation
				mpicx.Send(world, []int{0}, 0, 1).MustWait(ctx)
			}
		}
		mpicx.Send(world, []int{0}, 1, 2)
		if world.Rank() == 0 {
			return mpicx.Recv(world, []int{0}, 2, 3).Wait(ctx)
		}
		return mpicx.Send(world, []int{0}, 0, 3).Wait(ctx)
	})
}
