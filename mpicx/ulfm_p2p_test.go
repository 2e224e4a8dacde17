package mpicx_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
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
		mpicx.Sendrecv(world, []int{7}, peer, 1, got, peer, 1).MustWait(ctx)
		require.Equal(t, 7, got[0], "what was cancelled is received")
		return nil
	})
}

// H1, H3: a short message outlives its sender, a long one need not; a Mprobe of anybody's
// continues when the death is acknowledged.
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
		mpicx.Send(world, []int{0}, 1, 3).MustWait(ctx)
		mpicx.Throw(deadIs(world.Mprobe(1, 9).Wait(ctx), 1))
		require.ErrorIs(t, anybody.Wait(ctx), mpicx.ErrProcFailedPending)
		world.AckFailed(1)
		got := []int{0}
		mpicx.Mrecv(short, got).MustWait(ctx)
		require.Equal(t, []int{1}, got)
		if err := mpicx.MrecvSlice[int](long).Wait(ctx); err != nil { // unless it was faster than the end of what the dead has begun
			mpicx.Throw(deadIs(err, 1))
		}
		mpicx.Send(world, []int{0}, 2, 3).MustWait(ctx)
		m := anybody.MustGet(ctx)
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

// H3: a receive from anybody reports a death, stays pending, and continues once all
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
			done, err := recv.Test()
			require.False(t, done)
			mpicx.Throw(expect(err, mpicx.ErrProcFailedPending))
			i, err := future.WaitAny(ctx, mpicx.Recv(world, []int{0}, 4, 7), other)
			require.Equal(t, 1, i)
			mpicx.Throw(expect(err, mpicx.ErrProcFailedPending))
			i, err = future.WaitAny(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7))
			require.Equal(t, 1, i, "WaitAny prefers what is done")
			mpicx.Throw(deadIs(err, 1))
			err = future.WaitAll(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7), other)
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
			done, err = recv.Test()
			require.False(t, done || err != nil, "acknowledged: %v", err)
			mpicx.Send(world, []int{1}, 2, 2)
			require.Equal(t, 2, recv.MustGet(ctx).Source)
			require.Equal(t, 42, got[0])
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
		return first(mpicx.Probe[int](world, 2, 1).Wait(ctx), deadIs(mpicx.Recv(world, []int{0}, 1, 9).Wait(ctx), 1),
			mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx),
			expect(mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx), mpicx.ErrProcFailedPending))
	})
}

// H4: after Revoke every operation of every rank ends, those that repair excepted,
// and Revoke may be called by all.
func TestH4Revoke(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 33} {
		mortal(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me := world.Rank()
			dup := world.Dup().MustGet(ctx)
			dup.Barrier().MustWait(ctx) // else the revoke may come before the agreement on dup
			pending := mpicx.Recv(world, []int{0}, (me+1)%n, 1)
			if me == n/2 || me == 0 {
				mpicx.Throw(first(world.Revoke(ctx), world.Revoke(ctx)))
				require.True(t, world.Revoked())
			}
			for _, err := range []error{
				pending.Wait(ctx), world.Barrier().Wait(ctx), mpicx.Send(world, []int{1}, me, 0).Wait(ctx), world.Err(),
				world.Split(0, 0).Wait(ctx), world.SignalError(ctx, 1),
			} {
				mpicx.Throw(expect(err, mpicx.ErrRevoked))
			}
			require.Equal(t, -1<<n, world.Agree(^(1 << me)).MustGet(ctx))
			small := world.Shrink().MustGet(ctx)
			require.Equal(t, []int{n, me}, []int{small.Size(), small.Rank()})
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
		mpicx.Throw(corruption(world.Barrier().Wait(ctx), 1))
		require.True(t, world.Revoked())
		return nil
	})
}

// A rank that has a communicator that others gave up because of a revoke is told at its first use.
func TestRevokeWhileCreating(t *testing.T) {
	for seed := range uint64(200) {
		mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
			rnd := rand.New(rand.NewPCG(seed, uint64(world.Rank())))
			made := world.Dup()
			yield(rnd.IntN(20))
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
