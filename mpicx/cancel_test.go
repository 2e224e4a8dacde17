package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What waits for a message can be cancelled, and what does not can't.
func TestCancel(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		buf := []int{5}
		recv, slice, value := mpicx.Recv(world, buf, peer, 1), mpicx.RecvSlice[int](world, peer, 1), mpicx.RecvValue[int](world, mpicx.AnySource, mpicx.AnyTag)
		probe, mprobe := mpicx.Probe[int](world, peer, 1), world.Mprobe(peer, 1)
		persistent := mpicx.RecvInit(world, buf, peer, 1)
		started := persistent.Start()
		require.True(t, mpicx.Cancel(recv))
		require.True(t, mpicx.Cancel(slice))
		require.True(t, mpicx.Cancel(value))
		require.True(t, mpicx.Cancel(probe))
		require.True(t, mpicx.Cancel(mprobe))
		require.True(t, mpicx.Cancel(started))
		for _, f := range []future.Waiter{recv, slice, value, probe, mprobe, started} {
			err := f.Wait(ctx)
			require.ErrorIs(t, err, mpicx.ErrCancelled)
			require.ErrorAs(t, err, new(*mpicx.MPIError)) // F2
		}
		require.False(t, mpicx.Cancel(recv))
		require.NoError(t, world.Barrier().Wait(ctx))

		again := persistent.Start() // a request that was cancelled serves no more, the operation does
		require.NoError(t, mpicx.Send(world, []int{7}, peer, 1).Wait(ctx))
		require.NoError(t, again.Wait(ctx))
		require.Equal(t, []int{7}, buf)
		require.False(t, mpicx.Cancel(again))
		require.NoError(t, again.Wait(ctx))

		send := mpicx.Ssend(world, []int{7}, peer, 1)
		require.False(t, mpicx.Cancel(send))
		barrier := world.Barrier()
		require.False(t, mpicx.Cancel(barrier))
		both := mpicx.Sendrecv(world, buf, peer, 2, buf, peer, 2)
		require.False(t, mpicx.Cancel(both))
		require.False(t, mpicx.Cancel(future.Ready(1)))
		require.PanicsWithValue(t, "mpicx: Cancel: nil future, expected the future of a receive or probe", func() { mpicx.Cancel[int](nil) })
		return future.WaitAll(ctx, mpicx.Recv(world, []int{0}, peer, 1), send, barrier, both)
	})
}

// A Cancel and the message come at the same time, again and again: exactly one of them has the
// receive, and no message is lost.
func TestCancelRace(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		const rounds = 500
		if world.Rank() == 1 {
			for i := range rounds {
				if err := mpicx.Send(world, numbers(i%3*1000, i), 0, 1).Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		}
		buf := make([]int, 2000)
		persistent := mpicx.RecvInit(world, buf, 1, 1)
		for tries, received := 0, 0; received < rounds; tries++ {
			start := persistent.Start
			if tries%2 == 0 {
				start = func() *future.Future[mpicx.Status] { return mpicx.Recv(world, buf, mpicx.AnySource, 1) }
			}
			f := start()
			for range tries % 7 {
				runtime.Gosched()
			}
			cancelled := mpicx.Cancel(f)
			s, err := f.Get(ctx)
			switch {
			case cancelled != errors.Is(err, mpicx.ErrCancelled):
				return fmt.Errorf("Cancel said %t, Wait %w", cancelled, err)
			case err == nil && s.Count != received%3*1000:
				return fmt.Errorf("message %d has %d elements", received, s.Count)
			case err == nil:
				received++
			case !cancelled:
				return err
			}
		}
		return nil
	})
}
