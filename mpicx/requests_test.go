package mpicx_test

import (
	"context"
	"errors"
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
		require.True(t, mpicx.Cancel(recv) && mpicx.Cancel(slice) && mpicx.Cancel(value))
		require.True(t, mpicx.Cancel(probe) && mpicx.Cancel(mprobe) && mpicx.Cancel(started))
		for _, f := range []future.Waiter{recv, slice, value, probe, mprobe, started} {
			err := f.Wait(ctx)
			require.ErrorIs(t, err, mpicx.ErrCancelled)
			require.ErrorAs(t, err, new(*mpicx.MPIError)) // F2
		}
		require.False(t, mpicx.Cancel(recv))
		world.Barrier().MustWait(ctx)

		again := persistent.Start() // a request that was cancelled serves no more, the operation does
		mpicx.Send(world, []int{7}, peer, 1).MustWait(ctx)
		again.MustWait(ctx)
		require.Equal(t, []int{7}, buf)
		require.False(t, mpicx.Cancel(again))
		again.MustWait(ctx)

		send, barrier, both := mpicx.Ssend(world, []int{7}, peer, 1), world.Barrier(), mpicx.Sendrecv(world, buf, peer, 2, buf, peer, 2)
		require.False(t, mpicx.Cancel(send) || mpicx.Cancel(barrier) || mpicx.Cancel(both) || mpicx.Cancel(future.Ready(1)))
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
				got, sent := recv.Start(), sends[i%2].Start()
				require.Equal(t, mpicx.Status{Source: peer, Tag: 1 + i%2, Count: length}, got.MustGet(ctx))
				sent.MustWait(ctx)
				require.Equal(t, numbers(length, 100*i+peer), in)
			}
		}
		nobody := mpicx.RecvInit(world, []int{0}, mpicx.ProcNull, 1)
		require.Equal(t, mpicx.ProcNull, nobody.Start().MustGet(ctx).Source)
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
			recv := mpicx.RecvInit(world, in, 0, 1)
			for _, p := range []*mpicx.Persistent{mpicx.SendInit(world, out, 0, 1), mpicx.SsendInit(world, out, 0, 1)} {
				require.Zero(t, testing.AllocsPerRun(1000, func() {
					got, sent := recv.Start(), p.Start()
					got.MustWait(ctx)
					sent.MustWait(ctx)
				}), "%d elements", length)
			}
		}
		return nil
	})
}

// F1: starting never fails. Bad arguments come out of Wait with their value and what was expected.
func TestF1BadArguments(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		one, me := []int{1}, world.Rank()
		var noComm *mpicx.Comm
		var noPersistent *mpicx.Persistent
		mpicx.Throw(refused(ctx,
			refusal{mpicx.Send(world, one, 2, 0), "Send", mpicx.ClassRank, "rank 2 of world, expected 0 to 1 or ProcNull"},
			refusal{mpicx.Send(world, one, -1, 0), "Send", mpicx.ClassRank, "rank -1 of world, expected 0 to 1"},
			refusal{mpicx.Ssend(world, one, 0, -5), "Ssend", mpicx.ClassTag, "tag -5, expected 0 or more"},
			refusal{mpicx.Send(world, one, 0, mpicx.AnyTag), "Send", mpicx.ClassTag, "tag -1"},
			refusal{mpicx.Recv(world, one, 7, 0), "Recv", mpicx.ClassRank, "rank 7 of world, expected 0 to 1, AnySource or ProcNull"},
			refusal{mpicx.Recv(world, one, 0, -2), "Recv", mpicx.ClassTag, "tag -2, expected 0 or more or AnyTag"},
			refusal{mpicx.Probe[int](world, -2, 0), "Probe", mpicx.ClassRank, "rank -2"},
			refusal{mpicx.RecvSlice[int](world, 9, 0), "RecvSlice", mpicx.ClassRank, "rank 9"},
			refusal{mpicx.RecvValue[int](world, 9, 0), "RecvValue", mpicx.ClassRank, "rank 9"},
			refusal{mpicx.SendValue(world, 1, 9, 0), "SendValue", mpicx.ClassRank, "rank 9"},
			refusal{mpicx.SendValue(world, func() {}, 0, 0), "SendValue", mpicx.ClassType, "func()"},
			refusal{mpicx.Sendrecv(world, one, 2, 0, one, 0, 0), "Sendrecv", mpicx.ClassRank, "rank 2 of world, expected 0 to 1 or ProcNull"},
			refusal{mpicx.Sendrecv(world, one, mpicx.AnySource, 0, one, 0, 0), "Sendrecv", mpicx.ClassRank, "rank -1 of world, expected 0 to 1 or ProcNull"},
			refusal{mpicx.Sendrecv(world, one, 0, 0, one, 3, 0), "Sendrecv", mpicx.ClassRank, "rank 3 of world, expected 0 to 1, AnySource or ProcNull"},
			refusal{mpicx.Sendrecv(world, one, 0, mpicx.AnyTag, one, 0, 0), "Sendrecv", mpicx.ClassTag, "tag -1, expected 0 or more"},
			refusal{mpicx.Sendrecv(world, one, 0, 0, one, 0, -2), "Sendrecv", mpicx.ClassTag, "tag -2, expected 0 or more or AnyTag"},
			refusal{mpicx.Sendrecv(world, one, 0, 0, []string{""}, 0, 0), "Sendrecv", mpicx.ClassType, "elements of type string have pointers"},
			refusal{mpicx.Sendrecv(nil, one, 0, 0, one, 0, 0), "Sendrecv", mpicx.ClassComm, "nil communicator (Split returns it for Undefined)"},
			refusal{mpicx.Sendrecv(world, []int{1, 2}, me, 1, one, me, 1), "Sendrecv", mpicx.ClassTruncate, "with tag 1 is longer than the buffer of 8 bytes"},
			refusal{noComm.Mprobe(0, 0), "Mprobe", mpicx.ClassComm, "nil communicator"},
			refusal{world.Mprobe(2, 0), "Mprobe", mpicx.ClassRank, "rank 2 of world, expected 0 to 1, AnySource or ProcNull"},
			refusal{mpicx.Mrecv(nil, one), "Mrecv", mpicx.ClassOther, "nil message, expected one that Mprobe has taken"},
			refusal{noPersistent.Start(), "Start", mpicx.ClassOther, "nil operation, expected the result of SendInit, SsendInit or RecvInit"},
			refusal{mpicx.SendInit(world, one, 2, 0).Start(), "SendInit", mpicx.ClassRank, "rank 2 of world, expected 0 to 1 or ProcNull"},
			refusal{mpicx.SsendInit(world, one, 0, -1).Start(), "SsendInit", mpicx.ClassTag, "tag -1, expected 0 or more"},
			refusal{mpicx.RecvInit(world, one, 9, 0).Start(), "RecvInit", mpicx.ClassRank, "rank 9 of world, expected 0 to 1, AnySource or ProcNull"},
			refusal{mpicx.RecvInit(world, []*int{nil}, 0, 0).Start(), "RecvInit", mpicx.ClassType, "elements of type *int have pointers"},
			refusal{mpicx.SendInit(nil, one, 0, 0).Start(), "SendInit", mpicx.ClassComm, "nil communicator"},
			refusal{world.Split(-7, 0), "Split", mpicx.ClassOther, "color -7"},
		))
		bad := mpicx.SendInit(world, one, 2, 0)
		require.Error(t, bad.Start().Wait(ctx))
		require.Error(t, bad.Start().Wait(ctx))
		require.Error(t, world.Signal(ctx, nil))
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
				ctx = short
			}
			return mpicx.Recv(world, []int{0}, 1-world.Rank(), 1).Wait(ctx)
		})
		mpicx.Throw(messagesAre(err, "mpicx: Recv from rank 1, tag 1 on world: context deadline exceeded"))
		require.Equal(t, world.Rank() == 0, errors.Is(err, context.DeadlineExceeded))
		return exchange(ctx, world, 0)
	})
}
