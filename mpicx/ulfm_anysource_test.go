package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// H3: a receive from anybody reports a death, stays pending, and goes on once all
// known deaths are acknowledged. Collective operations stay broken.
func TestH3AnySource(t *testing.T) {
	mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		switch me := world.Rank(); me {
		case 0:
			got := []int{0}
			recv := mpicx.Recv(world, got, mpicx.AnySource, 1)
			other := mpicx.RecvSlice[int](world, mpicx.AnySource, 1)
			if err := recv.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("Wait: %w", err)
			}
			if err := deadIs(mpicx.Recv(world, []int{0}, 1, 3).Wait(ctx), 1); err != nil {
				return err
			}
			if done, err := recv.Test(); done || !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("Test: %t %w", done, err)
			}
			if i, err := future.WaitAny(ctx, mpicx.Recv(world, []int{0}, 4, 7), other); i != 1 || !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("WaitAny: %d %w", i, err)
			}
			if i, err := future.WaitAny(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7)); i != 1 || !procFailed(err) {
				return fmt.Errorf("WaitAny prefers what is done: %d %w", i, err)
			}
			if err := future.WaitAll(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7), other); !procFailed(err) {
				return fmt.Errorf("WaitAll prefers what is final: %w", err)
			}
			if err := future.WaitAll(ctx, recv, other); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("WaitAll: %w", err)
			}
			for len(world.Failed()) < 2 { // the second one dies some time
				if err := mpicx.Recv(world, []int{0}, 3, 3).Wait(ctx); !procFailed(err) {
					return err
				}
			}
			failed := world.Failed()
			if n := world.AckFailed(1); n != 1 {
				return fmt.Errorf("%d acknowledged", n)
			}
			if err := recv.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("one of two acknowledged: %w", err)
			}
			if n := world.AckFailed(9); n != 2 || !slices.Equal(world.Failed(), failed) {
				return fmt.Errorf("%d acknowledged of %v", n, world.Failed())
			}
			if done, err := recv.Test(); done || err != nil {
				return fmt.Errorf("acknowledged: %t %w", done, err)
			}
			mpicx.Send(world, []int{1}, 2, 2)
			if s, err := recv.Get(ctx); err != nil || s.Source != 2 || got[0] != 42 {
				return fmt.Errorf("%v %v %w", s, got, err)
			}
			return first(mpicx.Send(world, []int{1}, 4, 2).Wait(ctx), other.Wait(ctx), allowed(world.Barrier().Wait(ctx), procFailed))
		case 1, 3:
			mpicxtest.Die(world)
		default:
			if err := mpicx.Recv(world, []int{0}, 0, 2).Wait(ctx); err != nil {
				return err
			}
			return mpicx.Send(world, []int{42}, 0, 1).Wait(ctx)
		}
		return nil
	})
}

// A receive from anybody that begins after the death knows it too, unless its
// message is there; under ErrorsPropagate it corrupts.
func TestH3AnySourceAfterwards(t *testing.T) {
	program := func(ctx context.Context, world *mpicx.Comm, pending func(error) error) error {
		switch world.Rank() {
		case 1:
			mpicxtest.Die(world)
		case 2:
			return mpicx.Send(world, []int{1}, 0, 1).Wait(ctx)
		}
		return first(mpicx.Probe[int](world, 2, 1).Wait(ctx), deadIsOrNil(world, ctx),
			mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx),
			pending(mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)))
	}
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		return program(ctx, world, func(err error) error {
			return allowed(err, func(err error) bool { return errors.Is(err, mpicx.ErrProcFailedPending) })
		})
	})
}

func TestH3PropagateAnySource(t *testing.T) {
	propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			mpicxtest.Die(world)
		}
		return corruptedBy(mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx), 1)
	})
}
