package mpicx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

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

// P3, P4, F4: an error ends a Start, and the operation is started again after it. After Close it
// is not.
func TestPersistentAfterAnError(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		comm := dup(ctx, world)
		peer := 1 - comm.Rank()
		out, in := numbers(20_000, comm.Rank()), make([]int, 20_000)
		send, recv := mpicx.SsendInit(comm, out, peer, 1), mpicx.RecvInit(comm, in, peer, 1)
		for i := range 3 {
			err := comm.Try(ctx, func(ctx context.Context) error {
				sent := send.Start()
				if comm.Rank() == 1 {
					require.ErrorContains(t, send.Start().Wait(ctx), "SsendInit: started while it is under way, expected the future of the last Start to be done")
					return errors.New("enough")
				}
				return sent.Wait(ctx)
			})
			require.ErrorAs(t, err, new(*mpicx.PropagatedError))
			err = comm.TryAll(ctx, func(ctx context.Context) error { return future.WaitAll(ctx, recv.Start(), send.Start()) })
			require.NoError(t, err, "round %d", i)
			require.Equal(t, numbers(20_000, peer), in)
		}
		if err := comm.Close(ctx); err != nil {
			return err
		}
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

// A Start allocates nothing, short or long, synchronous or not, but for a sixteenth of sixteen futures.
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
