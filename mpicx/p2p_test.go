package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Whatever names ProcNull is done at once, moves nothing, and says so.
func TestProcNull(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		nobody := mpicx.Status{Source: mpicx.ProcNull, Tag: mpicx.AnyTag}
		buf := []float64{1, 2}
		for name, f := range map[string]*future.Future[mpicx.Status]{
			"Send":      mpicx.Send(world, buf, mpicx.ProcNull, 3),
			"Ssend":     mpicx.Ssend(world, buf, mpicx.ProcNull, 3),
			"SendValue": mpicx.SendValue(world, "text", mpicx.ProcNull, 3),
			"Recv":      mpicx.Recv(world, buf, mpicx.ProcNull, 3),
			"Probe":     mpicx.Probe[float64](world, mpicx.ProcNull, mpicx.AnyTag),
			"Sendrecv":  mpicx.Sendrecv(world, buf, mpicx.ProcNull, 3, buf, mpicx.ProcNull, 3),
		} {
			done, err := f.Test()
			require.True(t, done && err == nil, "%s: %v", name, err)
			require.Equal(t, nobody, f.MustGet(ctx), name)
		}
		require.Equal(t, []float64{1, 2}, buf)
		require.Empty(t, mpicx.RecvSlice[float64](world, mpicx.ProcNull, 3).MustGet(ctx))
		require.Empty(t, mpicx.RecvValue[string](world, mpicx.ProcNull, 3).MustGet(ctx))
		return world.Barrier().Wait(ctx)
	})
}

func numbers(n, from int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = from + i
	}
	return all
}

// Ranks that send before they receive never wait for each other while their messages are short and
// received, however many there are.
func TestSendsBeforeReceives(t *testing.T) {
	exchange := func(ctx context.Context, world *mpicx.Comm) error {
		peer, got := 1-world.Rank(), []int{0}
		for i := range 1<<16 + 1<<15 {
			mpicx.Send(world, []int{i}, peer, 0).MustWait(ctx)
			mpicx.Recv(world, got, peer, 0).MustWait(ctx)
			mpicx.Throw(same("the message", got, []int{i}))
		}
		return nil
	}
	if processes != nil {
		mpicxtest.Run(t, 2, exchange)
	} else {
		mpicxtest.RunProcesses(t, 2, exchange)
	}
}

// A ring passes long and short messages round, by two slices, by one, and by two that overlap.
func TestSendrecv(t *testing.T) {
	for _, n := range fitting(1, 2, 3, 4) {
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me, left, right := world.Rank(), (world.Rank()+n-1)%n, (world.Rank()+1)%n
			for _, length := range []int{0, 1, 1000, 20_000} {
				got := make([]int, length+1)
				s := mpicx.Sendrecv(world, numbers(length, me), right, 3, got, left, 3).MustGet(ctx)
				require.Equal(t, mpicx.Status{Source: left, Tag: 3, Count: length}, s)
				require.Equal(t, append(numbers(length, left), 0), got)

				same := numbers(length, me)
				mpicx.Sendrecv(world, same, right, 4, same, left, mpicx.AnyTag).MustWait(ctx)
				require.Equal(t, numbers(length, left), same)

				both := append(numbers(length, me), 0)
				mpicx.Sendrecv(world, both[:length], right, 5, both[1:], left, 5).MustWait(ctx)
				require.Equal(t, numbers(length, left), both[1:])
			}
			got := []float32{-1} // in a row, whose ends have no neighbour
			before := map[bool]int{true: mpicx.ProcNull, false: left}[me == 0]
			after := map[bool]int{true: mpicx.ProcNull, false: right}[me == n-1]
			mpicx.Sendrecv(world, []float32{float32(me)}, after, 6, got, before, 6).MustWait(ctx)
			require.Equal(t, float32(me-1), got[0])
			return world.Barrier().Wait(ctx)
		})
	}
}

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
			m := world.Mprobe(mpicx.AnySource, mpicx.AnyTag).MustGet(ctx)
			require.False(t, seen[[2]int{m.Source, m.Tag}])
			seen[[2]int{m.Source, m.Tag}] = true
			switch m.Tag {
			case floats:
				buf := make([]float64, m.Bytes/8)
				require.Equal(t, mpicx.Status{Source: m.Source, Tag: floats, Count: 2}, mpicx.Mrecv(m, buf).MustGet(ctx))
				require.Equal(t, []float64{1, 2}, buf)
			case long:
				require.Equal(t, numbers(20_000, 5), mpicx.MrecvSlice[int](m).MustGet(ctx))
			case value:
				require.Equal(t, "text", mpicx.MrecvValue[string](m).MustGet(ctx))
			}
			require.ErrorContains(t, mpicx.MrecvSlice[int](m).Wait(ctx), "received already, expected one receive for each message")
		}
		return nil
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
		mpicx.Throw(isA[*mpicx.PropagatedError](err))
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

// Nobody's message is received, and a receive into a buffer that does not fit fails.
func TestMrecv(t *testing.T) {
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		m := world.Mprobe(mpicx.ProcNull, 0).MustGet(ctx)
		require.Equal(t, mpicx.ProcNull, m.Source)
		require.Equal(t, mpicx.Status{Source: mpicx.ProcNull, Tag: mpicx.AnyTag}, mpicx.Mrecv(m, []int{0}).MustGet(ctx))

		send := mpicx.Send(world, []int{1, 2}, 0, 1)
		m = world.Mprobe(0, 1).MustGet(ctx)
		require.ErrorContains(t, mpicx.Mrecv(m, []string{""}).Wait(ctx), "Mrecv: elements of type string have pointers")
		require.ErrorContains(t, mpicx.Mrecv(m, []int{1}).Wait(ctx), "message of 16 bytes from rank 0 with tag 1 is longer than the buffer of 8 bytes")
		return send.Wait(ctx)
	})
}

// Revoke ends operations that are pending or begin later, and messages that were taken.
func TestPointToPointRevoked(t *testing.T) {
	mortal(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		long := make([]int, 20_000)
		sent := mpicx.Send(world, long, peer, 1)
		m := world.Mprobe(peer, 1).MustGet(ctx)
		persistent := mpicx.RecvInit(world, long, peer, 2)
		pending := []future.Waiter{sent, mpicx.Sendrecv(world, []int{1}, peer, 3, []int{0}, peer, 4), world.Mprobe(mpicx.AnySource, 5), persistent.Start()}
		mpicx.Sendrecv(world, []int{0}, peer, 9, []int{0}, peer, 9).MustWait(ctx)
		if world.Rank() == 0 {
			mpicx.Throw(world.Revoke(ctx))
		}
		mpicx.Throw(expect(pending[1].Wait(ctx), mpicx.ErrRevoked))
		for i, f := range append(pending, persistent.Start(), world.Mprobe(peer, 1), mpicx.MrecvSlice[int](m), mpicx.Sendrecv(world, long, peer, 1, long, peer, 1)) {
			if err := f.Wait(ctx); !errors.Is(err, mpicx.ErrRevoked) {
				return fmt.Errorf("operation %d: %w", i, err)
			}
		}
		return nil
	})
}
