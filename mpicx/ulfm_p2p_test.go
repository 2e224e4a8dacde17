package mpicx_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
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
			mpicx.Throw(explain(deadIs(mpicx.Sendrecv(world, long, peer, 1, make([]int, 1), 2, 1).Wait(ctx), 2), "from the dead"))
			mpicx.Throw(explain(deadIs(mpicx.Sendrecv(world, long, 2, 1, make([]int, 1), peer, 2).Wait(ctx), 2), "to the dead"))
		}
		mpicx.Throw(meet(ctx, world, 2))
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
			mpicx.Send(world, []int{1}, 0, 1).MustWait(ctx)
			mpicx.Send(world, make([]int, 20_000), 0, 2)
			mpicx.Recv(world, []int{0}, 0, 3).MustWait(ctx)
			mpicxtest.Die(world)
		case 2:
			return first(mpicx.Recv(world, []int{0}, 0, 3).Wait(ctx), mpicx.Send(world, []int{2}, 0, 4).Wait(ctx))
		}
		short, long := world.Mprobe(1, 1).MustGet(ctx), world.Mprobe(1, 2).MustGet(ctx)
		anybody := world.Mprobe(mpicx.AnySource, 4)
		require.NoError(t, mpicx.Send(world, []int{0}, 1, 3).Wait(ctx))
		mpicx.Throw(deadIs(world.Mprobe(1, 9).Wait(ctx), 1))
		require.ErrorIs(t, anybody.Wait(ctx), mpicx.ErrProcFailedPending)
		world.AckFailed(1)
		got := []int{0}
		require.NoError(t, mpicx.Mrecv(short, got).Wait(ctx))
		require.Equal(t, []int{1}, got)
		if err := mpicx.MrecvSlice[int](long).Wait(ctx); err != nil { // unless it was faster than the end of what the dead has begun
			mpicx.Throw(deadIs(err, 1))
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
		mpicx.Throw(corruptedBy(world.Barrier().Wait(ctx), 1))
		rest := world.Shrink().MustGet(ctx)
		return rest.Barrier().Wait(ctx)
	})
}

// H3: a receive from anybody reports a death, stays pending, and goes on once all
// known deaths are acknowledged. Collective operations stay broken.
func TestH3AnySource(t *testing.T) {
	mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		switch me := world.Rank(); me {
		case 0:
			got := []int{0}
			recv := mpicx.Recv(world, got, mpicx.AnySource, 1)
			other := mpicx.RecvSlice[int](world, mpicx.AnySource, 1)
			mpicx.Throw(expect(recv.Wait(ctx), mpicx.ErrProcFailedPending))
			mpicx.Throw(deadIs(mpicx.Recv(world, []int{0}, 1, 3).Wait(ctx), 1))
			if done, err := recv.Test(); done || !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("Test: %t %w", done, err)
			}
			if i, err := future.WaitAny(ctx, mpicx.Recv(world, []int{0}, 4, 7), other); i != 1 || !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("WaitAny: %d %w", i, err)
			}
			if i, err := future.WaitAny(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7)); i != 1 || !procFailed(err) {
				return fmt.Errorf("WaitAny prefers what is done: %d %w", i, err)
			}
			err := future.WaitAll(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7), other)
			mpicx.Throw(explain(deadIs(err, 1), "WaitAll prefers what is final"))
			mpicx.Throw(expect(future.WaitAll(ctx, recv, other), mpicx.ErrProcFailedPending))
			for len(world.Failed()) < 2 { // the second one dies some time
				mpicx.Throw(deadIs(mpicx.Recv(world, []int{0}, 3, 3).Wait(ctx), 3))
			}
			failed := world.Failed()
			require.Equal(t, 1, world.AckFailed(1))
			mpicx.Throw(expect(recv.Wait(ctx), mpicx.ErrProcFailedPending))
			require.Equal(t, 2, world.AckFailed(9))
			require.Equal(t, failed, world.Failed())
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
			mpicx.Recv(world, []int{0}, 0, 2).MustWait(ctx)
			return mpicx.Send(world, []int{42}, 0, 1).Wait(ctx)
		}
		return nil
	})
}

// A receive from anybody that begins after the death knows it too, unless its message is there.
func TestH3AnySourceAfterwards(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 1:
			mpicxtest.Die(world)
		case 2:
			return mpicx.Send(world, []int{1}, 0, 1).Wait(ctx)
		}
		return first(mpicx.Probe[int](world, 2, 1).Wait(ctx), deadIsOrNil(world, ctx),
			mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx),
			expect(mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx), mpicx.ErrProcFailedPending))
	})
}

// Under ErrorsPropagate it corrupts.
func TestH3PropagateAnySource(t *testing.T) {
	propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			mpicxtest.Die(world)
		}
		return corruptedBy(mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx), 1)
	})
}

// H4: after Revoke every operation of every rank ends, those that repair excepted,
// and Revoke may be called by all.
func TestH4Revoke(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 33} {
		mortal(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me := world.Rank()
			dup := world.Dup().MustGet(ctx)
			if err := dup.Barrier().Wait(ctx); err != nil { // else the revoke may come before the agreement on dup
				return err
			}
			pending := mpicx.Recv(world, []int{0}, (me+1)%n, 1)
			if me == n/2 || me == 0 {
				if err := first(world.Revoke(ctx), world.Revoke(ctx)); err != nil || !world.Revoked() {
					return fmt.Errorf("revoked %t: %w", world.Revoked(), err)
				}
			}
			for _, err := range []error{
				pending.Wait(ctx), world.Barrier().Wait(ctx), mpicx.Send(world, []int{1}, me, 0).Wait(ctx), world.Err(),
				world.Split(0, 0).Wait(ctx), world.SignalError(ctx, 1),
			} {
				mpicx.Throw(expect(err, mpicx.ErrRevoked))
			}
			flag, err := world.Agree(^(1 << me)).Get(ctx)
			if want := -1 << n; err != nil || flag != want {
				return fmt.Errorf("agreed on %b, %w", flag, err)
			}
			small, err := world.Shrink().Get(ctx)
			if err != nil || small.Size() != n || small.Rank() != me {
				return fmt.Errorf("shrunk: %v %w", small, err)
			}
			// Others do not notice.
			return first(exchange(ctx, small, 1), exchange(ctx, dup, 2), small.Close(ctx), dup.Close(ctx), world.Close(ctx))
		})
	}
}

// Under ErrorsPropagate Revoke corrupts.
func TestRevokePropagates(t *testing.T) {
	propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			mpicx.Throw(world.Revoke(ctx))
		}
		err := world.Barrier().Wait(ctx)
		c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
		if !ok || len(c.Failures) != 1 || c.Failures[0].Rank != 1 || !world.Revoked() {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// A rank that has a communicator that others gave up because of a revoke is told at its
// first use.
func TestRevokeWhileCreating(t *testing.T) {
	for seed := range uint64(200) {
		mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
			rnd := rand.New(rand.NewPCG(seed, uint64(world.Rank())))
			made := world.Dup()
			for range rnd.IntN(20) {
				runtime.Gosched()
			}
			if world.Rank() == int(seed%5) {
				mpicx.Throw(world.Revoke(ctx))
			}
			d, err := made.Get(ctx)
			if err == nil {
				err = d.Barrier().Wait(ctx)
			}
			if err != nil && !errors.Is(err, mpicx.ErrRevoked) {
				return err
			}
			return world.Agree(1).Wait(ctx)
		})
	}
}
