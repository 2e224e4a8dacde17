package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
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

// Each Start moves what is in the buffers by then; a future that is done keeps its result (F3).
func TestPersistent(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		for _, length := range []int{1, 20_000} {
			out, in := make([]int, length), make([]int, length)
			sends := []*mpicx.Persistent{mpicx.SendInit(world, out, peer, 1), mpicx.SsendInit(world, out, peer, 2)}
			recv := mpicx.RecvInit(world, in, peer, mpicx.AnyTag)
			for i := range 20 {
				copy(out, numbers(length, 100*i+world.Rank()))
				got := recv.Start()
				sent := sends[i%2].Start()
				s, err := got.Get(ctx)
				require.NoError(t, err)
				require.NoError(t, sent.Wait(ctx))
				require.Equal(t, mpicx.Status{Source: peer, Tag: 1 + i%2, Count: length}, s)
				require.Equal(t, numbers(length, 100*i+peer), in)
			}
		}
		nobody := mpicx.RecvInit(world, []int{0}, mpicx.ProcNull, 1)
		s, err := nobody.Start().Get(ctx)
		require.NoError(t, err)
		require.Equal(t, mpicx.ProcNull, s.Source)
		return world.Barrier().Wait(ctx)
	})
}

// An operation is not started while it is under way, nor after Close. P3: after an error it is.
func TestPersistentAfterAnError(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		comm := dup(ctx, world)
		peer := 1 - comm.Rank()
		out, in := numbers(20_000, comm.Rank()), make([]int, 20_000)
		send, recv := mpicx.SsendInit(comm, out, peer, 1), mpicx.RecvInit(comm, in, peer, 1)
		sent := send.Start()
		if comm.Rank() == 1 {
			require.ErrorContains(t, send.Start().Wait(ctx), "SsendInit: started while it is under way, expected the future of the last Start to be done")
			mpicx.Throw(propagated(comm.SignalError(ctx, 7), 7))
		} else {
			mpicx.Throw(propagated(sent.Wait(ctx), 7))
		}
		mpicx.Throw(comm.TryAll(ctx, func(ctx context.Context) error { return future.WaitAll(ctx, recv.Start(), send.Start()) }))
		require.Equal(t, numbers(20_000, peer), in)
		mpicx.Throw(comm.Close(ctx))
		require.ErrorContains(t, recv.Start().Wait(ctx), "RecvInit: world.dup1 is closed")
		require.ErrorContains(t, send.Start().Wait(ctx), "SsendInit: world.dup1 is closed")
		return world.Barrier().Wait(ctx)
	})
}

func TestPersistentMisused(t *testing.T) {
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		var none *mpicx.Persistent
		for want, p := range map[string]*mpicx.Persistent{
			"Start: nil operation, expected the result of SendInit, SsendInit or RecvInit": none,
			"SendInit: rank 1 of world, expected 0 to 0 or ProcNull":                       mpicx.SendInit(world, []int{1}, 1, 0),
			"SsendInit: tag -1, expected 0 or more":                                        mpicx.SsendInit(world, []int{1}, 0, -1),
			"RecvInit: rank 9 of world, expected 0 to 0, AnySource or ProcNull":            mpicx.RecvInit(world, []int{1}, 9, 0),
			"RecvInit: elements of type *int have pointers":                                mpicx.RecvInit(world, []*int{nil}, 0, 0),
			"SendInit: nil communicator":                                                   mpicx.SendInit(nil, []int{1}, 0, 0),
		} {
			for range 2 {
				require.ErrorContains(t, p.Start().Wait(ctx), want)
			}
		}
		return nil
	})
}

// A Start allocates nothing, short or long, synchronous or not, but for a sixteenth of sixteen
// futures.
func TestPersistentAllocatesNothing(t *testing.T) {
	if buildtags.Race {
		t.Skip("the race detector allocates")
	}
	oneProcess(t)
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		for _, length := range []int{1, 20_000} {
			out, in := make([]int, length), make([]int, length)
			send, ssend, recv := mpicx.SendInit(world, out, 0, 1), mpicx.SsendInit(world, out, 0, 1), mpicx.RecvInit(world, in, 0, 1)
			for _, p := range []*mpicx.Persistent{send, ssend} {
				require.Zero(t, testing.AllocsPerRun(1000, func() {
					got, sent := recv.Start(), p.Start()
					if got.Wait(ctx) != nil || sent.Wait(ctx) != nil {
						panic("failed")
					}
				}), "%d elements", length)
			}
		}
		return nil
	})
}

func BenchmarkPersistent(b *testing.B) {
	for _, length := range []int{1, 20_000} {
		b.Run(map[bool]string{true: "short", false: "long"}[length == 1], func(b *testing.B) {
			_ = mpicx.Run(b.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				out, in := make([]int, length), make([]int, length)
				send, recv := mpicx.SendInit(world, out, 0, 1), mpicx.RecvInit(world, in, 0, 1)
				b.ReportAllocs()
				for b.Loop() {
					got, sent := recv.Start(), send.Start()
					got.MustWait(ctx)
					sent.MustWait(ctx)
				}
				return nil
			}, mpicx.WithRanks(1))
		})
	}
}

// F1: starting never fails, bad arguments come out of Wait with their value.
func TestF1BadArguments(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		one := []int{1}
		for i, test := range []struct {
			f     future.Waiter
			class mpicx.Class
			want  []string
		}{
			{mpicx.Send(world, one, 2, 0), mpicx.ClassRank, []string{"Send", "rank 2", "0 to 1"}},
			{mpicx.Send(world, one, -1, 0), mpicx.ClassRank, []string{"rank -1", "0 to 1"}},
			{mpicx.Ssend(world, one, 0, -5), mpicx.ClassTag, []string{"Ssend", "tag -5", "0 or more"}},
			{mpicx.Send(world, one, 0, mpicx.AnyTag), mpicx.ClassTag, []string{"tag -1"}},
			{mpicx.Recv(world, one, 7, 0), mpicx.ClassRank, []string{"Recv", "rank 7", "AnySource"}},
			{mpicx.Recv(world, one, 0, -2), mpicx.ClassTag, []string{"tag -2", "AnyTag"}},
			{mpicx.Probe[int](world, -2, 0), mpicx.ClassRank, []string{"Probe", "rank -2"}},
			{mpicx.RecvSlice[int](world, 9, 0), mpicx.ClassRank, []string{"RecvSlice", "rank 9"}},
			{mpicx.RecvValue[int](world, 9, 0), mpicx.ClassRank, []string{"RecvValue", "rank 9"}},
			{mpicx.SendValue(world, 1, 9, 0), mpicx.ClassRank, []string{"SendValue", "rank 9"}},
			{mpicx.SendValue(world, func() {}, 0, 0), mpicx.ClassType, []string{"SendValue", "func()"}},
			{world.Split(-7, 0), mpicx.ClassOther, []string{"Split", "color -7"}},
			{world.Shrink(), mpicx.ClassUnsupported, []string{"Shrink", "ulfm"}},
		} {
			err := test.f.Wait(ctx)
			if test.class == mpicx.ClassUnsupported && mpicx.Backend == "ulfm" {
				continue
			}
			var e *mpicx.MPIError
			if !errors.As(err, &e) || e.Class != test.class {
				return fmt.Errorf("%d: %v, expected class %v", i, err, test.class)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					return fmt.Errorf("%d: %v, expected it to have %q", i, err, want)
				}
			}
		}
		if err := world.Signal(ctx, nil); err == nil {
			return fmt.Errorf("Signal(nil): %v", err)
		}
		if mpicx.Backend == "blackchannel" && !errors.Is(world.Revoke(ctx), errors.ErrUnsupported) {
			return errors.New("Revoke works")
		}
		return exchange(ctx, world, 0)
	})
}

// A deadline inside Try is this rank's error, and goes to all.
func TestDeadlineInTry(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return mpicx.Recv(world, []int{0}, 1, 1).Wait(short)
			}
			return mpicx.Recv(world, []int{0}, 0, 1).Wait(ctx)
		})
		mpicx.Throw(messagesAre(err, "mpicx: Recv from rank 1, tag 1 on world: context deadline exceeded"))
		if errors.Is(err, context.DeadlineExceeded) != (world.Rank() == 0) {
			return fmt.Errorf("the cause: %v", err)
		}
		return exchange(ctx, world, 0)
	})
}
