package mpicx_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// H1: a Sendrecv with a dead rank ends, whichever half it is, though the other has no partner.
func TestSendrecvOfTheDead(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 2 {
			mpicxtest.Die(world)
		}
		peer := 1 - world.Rank()
		long := make([]int, 20_000)
		for range 2 {
			if err := deadIs(mpicx.Sendrecv(world, long, peer, 1, make([]int, 1), 2, 1).Wait(ctx), 2); err != nil {
				return fmt.Errorf("from the dead: %w", err)
			}
			if err := deadIs(mpicx.Sendrecv(world, long, 2, 1, make([]int, 1), peer, 2).Wait(ctx), 2); err != nil {
				return fmt.Errorf("to the dead: %w", err)
			}
		}
		if err := meet(ctx, world, 2); err != nil {
			return err
		}
		got := []int{0}
		if err := mpicx.Sendrecv(world, []int{7}, peer, 1, got, peer, 1).Wait(ctx); err != nil || got[0] != 7 {
			return fmt.Errorf("what was cancelled is received: %v, %w", got, err)
		}
		return nil
	})
}

// H1, H3: a short message outlives its sender, a long one need not; a Mprobe of anybody's
// goes on when the death is acknowledged.
func TestMprobeOfTheDead(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 1:
			if err := mpicx.Send(world, []int{1}, 0, 1).Wait(ctx); err != nil {
				return err
			}
			mpicx.Send(world, make([]int, 20_000), 0, 2)
			if err := mpicx.Recv(world, []int{0}, 0, 3).Wait(ctx); err != nil {
				return err
			}
			mpicxtest.Die(world)
		case 2:
			return first(mpicx.Recv(world, []int{0}, 0, 3).Wait(ctx), mpicx.Send(world, []int{2}, 0, 4).Wait(ctx))
		}
		short, long := world.Mprobe(1, 1).MustGet(ctx), world.Mprobe(1, 2).MustGet(ctx)
		anybody := world.Mprobe(mpicx.AnySource, 4)
		require.NoError(t, mpicx.Send(world, []int{0}, 1, 3).Wait(ctx))
		if err := deadIs(world.Mprobe(1, 9).Wait(ctx), 1); err != nil {
			return err
		}
		require.ErrorIs(t, anybody.Wait(ctx), mpicx.ErrProcFailedPending)
		world.AckFailed(1)
		got := []int{0}
		require.NoError(t, mpicx.Mrecv(short, got).Wait(ctx))
		require.Equal(t, []int{1}, got)
		if err := mpicx.MrecvSlice[int](long).Wait(ctx); err != nil { // unless it was faster than the end of what the dead has begun
			if err := deadIs(err, 1); err != nil {
				return err
			}
		}
		require.NoError(t, mpicx.Send(world, []int{0}, 2, 3).Wait(ctx))
		m, err := anybody.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, m.Source)
		return mpicx.Mrecv(m, got).Wait(ctx)
	})
}

// P4: long messages that are under way to and from a process when it dies end at the others.
func TestTransfersOfTheDead(t *testing.T) {
	propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		const messages, length = 8, 1 << 20
		begin := func(peer int) (first *future.Future[mpicx.Status]) {
			for range messages {
				first = cmp.Or(first, mpicx.Recv(world, make([]byte, length), peer, 1))
				mpicx.Send(world, make([]byte, length), peer, 1)
			}
			return first
		}
		if world.Rank() == 1 {
			begin(2)
			begin(3)
			begin(0).MustWait(ctx)
			mpicxtest.Die(world)
		}
		begin(1)
		if err := corruptedBy(world.Barrier().Wait(ctx), 1); err != nil {
			return err
		}
		rest, err := world.Shrink().Get(ctx)
		if err != nil {
			return err
		}
		return rest.Barrier().Wait(ctx)
	})
}
