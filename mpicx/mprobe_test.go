package mpicx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Messages of several types are taken, and received by what their tags say.
func TestMprobe(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		const floats, long, value = 1, 2, 3
		if world.Rank() > 0 {
			return future.WaitAll(ctx, mpicx.Ssend(world, []float64{1, 2}, 0, floats),
				mpicx.Send(world, numbers(20_000, 5), 0, long), mpicx.SendValue(world, "text", 0, value))
		}
		seen := make(map[[2]int]bool)
		for range 6 {
			m, err := world.Mprobe(mpicx.AnySource, mpicx.AnyTag).Get(ctx)
			require.NoError(t, err)
			require.False(t, seen[[2]int{m.Source, m.Tag}])
			seen[[2]int{m.Source, m.Tag}] = true
			switch m.Tag {
			case floats:
				buf := make([]float64, m.Bytes/8)
				s, err := mpicx.Mrecv(m, buf).Get(ctx)
				require.NoError(t, err)
				require.Equal(t, mpicx.Status{Source: m.Source, Tag: floats, Count: 2}, s)
				require.Equal(t, []float64{1, 2}, buf)
			case long:
				got, err := mpicx.MrecvSlice[int](m).Get(ctx)
				require.NoError(t, err)
				require.Equal(t, numbers(20_000, 5), got)
			case value:
				got, err := mpicx.MrecvValue[string](m).Get(ctx)
				require.NoError(t, err)
				require.Equal(t, "text", got)
			}
			require.ErrorContains(t, mpicx.MrecvSlice[int](m).Wait(ctx), "received already, expected one receive for each message")
		}
		return nil
	})
}

// However many goroutines look for messages, each gets those that it has found.
func TestMprobeByGoroutines(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		const goroutines, each = 4, 50
		length := func(i int) int { return i * i % 1500 }
		if world.Rank() == 1 {
			var all []future.Waiter
			for i := range goroutines * each {
				all = append(all, mpicx.Send(world, numbers(length(i), i), 0, 1))
			}
			return future.WaitAll(ctx, all...)
		}
		var all []future.Waiter
		for range goroutines {
			all = append(all, future.Go(func() (int, error) {
				for range each {
					m, err := world.Mprobe(mpicx.AnySource, 1).Get(ctx)
					if err != nil {
						return 0, err
					}
					buf := make([]int, m.Bytes/8)
					if err := mpicx.Mrecv(m, buf).Wait(ctx); err != nil {
						return 0, err
					}
					if len(buf) > 0 && length(buf[0]) != len(buf) {
						return 0, fmt.Errorf("%d elements of message %d", len(buf), buf[0])
					}
				}
				return 0, nil
			}))
		}
		return future.WaitAll(ctx, all...)
	})
}

// P3: a message that was taken before an error is gone after it, and its sender free.
func TestMprobeBeforeAnError(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		var send *future.Future[mpicx.Status]
		var m *mpicx.Message
		err := world.Try(ctx, func(ctx context.Context) (err error) {
			if world.Rank() == 1 {
				send = mpicx.Ssend(world, []int{1}, 0, 1)
				return send.Wait(ctx)
			}
			if m, err = world.Mprobe(1, 1).Get(ctx); err != nil {
				return err
			}
			return fmt.Errorf("enough")
		})
		if _, ok := err.(*mpicx.PropagatedError); !ok {
			return err
		}
		if m != nil {
			err = mpicx.Mrecv(m, []int{0}).Wait(ctx)
			require.EqualError(t, err, "mpicx: Mrecv: the message from rank 1 with tag 1 is lost, expected a receive before the error of world")
			require.ErrorContains(t, mpicx.MrecvSlice[int](m).Wait(ctx), "received already")
		} else {
			require.ErrorAs(t, send.Wait(ctx), new(*mpicx.PropagatedError))
		}
		return exchange(ctx, world, 0)
	})
}

func TestMprobeMisused(t *testing.T) {
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		var none *mpicx.Comm
		require.ErrorContains(t, none.Mprobe(0, 0).Wait(ctx), "Mprobe: nil communicator")
		require.ErrorContains(t, world.Mprobe(1, 0).Wait(ctx), "Mprobe: rank 1 of world, expected 0 to 0, AnySource or ProcNull")
		require.ErrorContains(t, mpicx.Mrecv(nil, []int{0}).Wait(ctx), "Mrecv: nil message, expected one that Mprobe has taken")
		m := world.Mprobe(mpicx.ProcNull, 0).MustGet(ctx)
		require.Equal(t, mpicx.ProcNull, m.Source)
		s, err := mpicx.Mrecv(m, []int{0}).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, mpicx.Status{Source: mpicx.ProcNull, Tag: mpicx.AnyTag}, s)

		send := mpicx.Send(world, []int{1, 2}, 0, 1)
		m = world.Mprobe(0, 1).MustGet(ctx)
		require.ErrorContains(t, mpicx.Mrecv(m, []string{""}).Wait(ctx), "Mrecv: elements of type string have pointers")
		require.ErrorContains(t, mpicx.Mrecv(m, []int{1}).Wait(ctx), "message of 16 bytes from rank 0 with tag 1 is longer than the buffer of 8 bytes")
		return send.Wait(ctx)
	})
}
