package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What fn returns passes Try unchanged if all ranks have it: wrapped, too.
func TestTryReturnsWhatAllHave(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		var wrapped error
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				return &placeError{0, 1}
			}
			wrapped = fmt.Errorf("while waiting: %w", world.Barrier().Wait(ctx))
			return wrapped
		})
		require.True(t, world.Rank() == 0 || err == wrapped, "%v", err)
		mpicx.Throw(isA[*mpicx.PropagatedError](err))
		return exchange(ctx, world, 0)
	})
}

func TestInstance(t *testing.T) {
	oneProcess(t)
	ctx := t.Context()
	one, err := mpicx.Initialize(ctx)
	require.NoError(t, err)
	two, err := mpicx.Initialize(ctx)
	require.NoError(t, err)
	require.Same(t, one, two)
	require.Equal(t, 1, one.World().Size())
	require.NoError(t, propagated(one.World().SignalError(ctx, 666), 666))
	require.NoError(t, exchange(ctx, one.World(), 0))
	require.NoError(t, one.Finalize(ctx))
	require.ErrorContains(t, one.Finalize(ctx), "finalized already")
	require.ErrorContains(t, (*mpicx.Instance)(nil).Finalize(ctx), "nil Instance")
	three, err := mpicx.Initialize(ctx)
	require.NoError(t, err)
	require.NotSame(t, one, three)
	require.NoError(t, three.Finalize(ctx))
	_, err = mpicx.Initialize(ctx, mpicx.WithRanks(3))
	require.ErrorContains(t, err, "3 ranks, expected one in each process")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = mpicx.Initialize(ended)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRunOptions(t *testing.T) {
	oneProcess(t)
	require.ErrorContains(t, mpicx.Run(t.Context(), returns, mpicx.WithRanks(0)), "0 ranks, expected 1 or more")
	require.ErrorContains(t, mpicx.Run(t.Context(), returns, mpicx.WithRanks(1), nil), "option 1 is nil")
	for want, d := range map[string]mpicx.Detector{
		"nil detector, expected one such as Ring{}":       nil,
		"timeout 1s, expected more than the period, 1s":   mpicx.Ring{Period: time.Second, Timeout: time.Second},
		"period -83.333333ms, expected more than 0":       mpicx.Ring{Timeout: -time.Second},
		"timeout 5s, expected more than the period, 1m0s": mpicx.Ring{Period: time.Minute},
		"period -2ns, expected more than 0":               mpicx.Ping{Period: -2},
		"timeout 2s, expected more than the period, 2s":   mpicx.Ping{Period: 2 * time.Second, Timeout: 2 * time.Second},
		"timeout 120h0m0s, expected at most 24h0m0s":      mpicx.Ping{Period: 30 * time.Hour},
	} {
		require.ErrorContains(t, mpicx.Run(t.Context(), returns, mpicx.WithDetector(d)), want)
	}
	require.NoError(t, mpicx.Run(t.Context(), returns, mpicx.WithDetector(mpicx.Ring{Timeout: time.Second})))
	require.NoError(t, mpicx.Run(t.Context(), returns, mpicx.WithDetector(mpicx.Ping{Period: 10 * time.Millisecond})))
	t.Setenv("MPICX_RANKS", "many")
	require.ErrorContains(t, mpicx.Run(t.Context(), returns), `MPICX_RANKS="many"`)
	t.Setenv("MPICX_RANKS", "3")
	var ranks atomic.Int32
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		ranks.Add(1)
		return world.Barrier().Wait(ctx)
	}))
	require.EqualValues(t, 3, ranks.Load())
}

// A program without -tags mpi that mpirun has started several times says so.
func TestRunWithoutMPI(t *testing.T) {
	oneProcess(t)
	if mpicx.Transport == "mpi" {
		t.Skip("built with -tags mpi")
	}
	t.Setenv("OMPI_COMM_WORLD_SIZE", "1")
	require.NoError(t, mpicx.Run(t.Context(), returns))
	t.Setenv("OMPI_COMM_WORLD_SIZE", "4")
	require.ErrorContains(t, mpicx.Run(t.Context(), returns, mpicx.WithRanks(4)), "4 processes (OMPI_COMM_WORLD_SIZE), and each would be a job of its own: build with -tags mpi")
	_, err := mpicx.Initialize(t.Context())
	require.ErrorContains(t, err, "-tags mpi")
	t.Setenv("MPICX_RANKS", "2")
	require.NoError(t, mpicx.Run(t.Context(), returns))
}

// Events are logged, with rank, comm and epoch.
func TestLog(t *testing.T) {
	oneProcess(t)
	var out printed
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	_ = mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			_ = world.SignalError(ctx, 666)
		} else {
			_ = world.Barrier().Wait(ctx)
		}
		_ = world.Guard(ctx, fails(world, 0, errors.New("unwound")))
		return world.Try(ctx, func(ctx context.Context) error {
			_ = world.Barrier().Wait(ctx)
			return errors.New("close failed")
		})
	}, mpicx.WithRanks(2), mpicx.WithLogger(log))
	for _, want := range []string{
		`level=WARN msg=signal rank=1 comm=world epoch=0 code=666 message="error 666" corrupt=false`,
		`level=WARN msg=notice rank=0 comm=world epoch=0 from=1`,
		`level=WARN msg=resolved rank=0 comm=world epoch=0 failures=1`,
		`level=WARN msg=resolved rank=1 comm=world epoch=0 failures=1`,
		`level=ERROR msg=signal rank=0 comm=world epoch=1 code=0 message=unwound corrupt=true`,
		`level=ERROR msg=notice rank=1 comm=world epoch=1 from=0`,
		`level=ERROR msg=corrupted rank=0 comm=world epoch=1 failures=`,
		`level=ERROR msg=corrupted rank=1 comm=world epoch=1 failures=`,
		`level=WARN msg=unsent rank=1 comm=world message="close failed"`,
	} {
		require.Contains(t, out.String(), want)
	}
}

// countingListener counts the messages that a rank sends on error channels.
type countingListener struct {
	transport.Listener
	sent *atomic.Int64
}

func (l *countingListener) Next() (to int, payload []byte, ok bool) {
	to, payload, ok = l.Listener.Next()
	if ok {
		l.sent.Add(1)
	}
	return to, payload, ok
}

// P6: without errors the error channel carries no message after set-up, until ranks close it;
// with one, a rank sends O(log n).
func TestP6Messages(t *testing.T) {
	for _, n := range fitting(1, 2, 3, 8, 33, 100, 256) {
		sent := make([]atomic.Int64, n)
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			return countMessages(ctx, t, world, &sent[world.Rank()])
		}, mpicx.WithRanks(n), hook.Transport[mpicx.Option](func(c transport.Comm) transport.Comm {
			return &listening{c, func(_ transport.Comm, l transport.Listener) transport.Listener {
				return &countingListener{l, &sent[c.Rank()]}
			}}
		})))
	}
}

// countMessages checks how many messages a rank sends without an error, and for one.
func countMessages(ctx context.Context, t *testing.T, world *mpicx.Comm, sent *atomic.Int64) error {
	n, me := world.Size(), world.Rank()
	world.Split(me%2, 0).MustGet(ctx)
	setUp := sent.Load() // with the ULFM backend, all agree that all have one
	mpicx.Throw(world.Guard(ctx, func(ctx context.Context) error {
		return world.Try(ctx, func(ctx context.Context) error {
			for range 3 {
				mpicx.Allreduce(world, []int{1}, []int{0}, mpicx.Sum).MustWait(ctx)
			}
			return nil
		})
	}))
	require.Equal(t, setUp, sent.Load(), "rank %d of %d, without an error", me, n)
	mpicx.Throw(world.TryAll(ctx, succeeds)) // all have looked
	var err error
	if me == n/3 {
		err = world.SignalError(ctx, 1)
	} else {
		err = mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)
	}
	most := 2 * (bits.Len(uint(n-1)) + 1)
	if mpicx.Backend == "ulfm" {
		most *= 2 // the graph has both neighbours at each distance
	}
	require.LessOrEqual(t, int(sent.Load()-setUp), most, "rank %d of %d", me, n)
	return propagated(err, 1)
}

// P1: whatever was pending ends, or the Barrier after it, and each rank gets the error once.
func TestP1WhateverWasPending(t *testing.T) {
	pending := []callee{
		{"Recv", func(p place) waiter { return mpicx.Recv(p.Comm, make([]int, 1), 0, 1) }},
		{"Recv any", func(p place) waiter { return mpicx.Recv(p.Comm, make([]int, 1), mpicx.AnySource, mpicx.AnyTag) }},
		{"RecvSlice", func(p place) waiter { return mpicx.RecvSlice[int](p.Comm, 0, 1) }},
		{"RecvValue", func(p place) waiter { return mpicx.RecvValue[string](p.Comm, 0, 1) }},
		{"Ssend", func(p place) waiter { return mpicx.Ssend(p.Comm, []int{1}, 0, 1) }},
		{"long Send", func(p place) waiter { return mpicx.Send(p.Comm, make([]int, 10000), 0, 1) }},
		{"Sendrecv", func(p place) waiter { return mpicx.Sendrecv(p.Comm, make([]int, 9), 0, 1, make([]int, 9), 0, 2) }},
		{"Probe", func(p place) waiter { return mpicx.Probe[int](p.Comm, 0, 1) }},
		{"Mprobe", func(p place) waiter { return p.Mprobe(mpicx.AnySource, 1) }},
		{"RecvInit", func(p place) waiter { return mpicx.RecvInit(p.Comm, make([]int, 1), 0, 1).Start() }},
		{"long SsendInit", func(p place) waiter { return mpicx.SsendInit(p.Comm, make([]int, 20_000), 0, 1).Start() }},
	}
	for _, n := range fitting(2, 5) {
		for _, call := range append(pending, callees(n)...) {
			if call.text == "Close" || call.text == "CreateIntercomm" {
				continue // the world is not closed, and what has no two groups is refused
			}
			mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				return explain(endsWithASignal(ctx, t, world, call.begin), "%s of %d", call.text, n)
			})
		}
	}
}

// endsWithASignal has rank 0 signal, while the others are in a call.
func endsWithASignal(ctx context.Context, t *testing.T, world *mpicx.Comm, begin func(place) waiter) error {
	if world.Rank() == 0 {
		mpicx.Throw(propagated(world.SignalError(ctx, 7), 7))
		return exchange(ctx, world, 0)
	}
	begun := begin(place{Comm: world})
	f, isFuture := begun.(future.Waiter)
	if isFuture && world.Rank() == 1 { // who only waits for the channel takes part as well
		<-f.Done()
	}
	err := begun.Wait(ctx)
	if err == nil { // it has not needed rank 0
		err = world.Barrier().Wait(ctx)
	}
	mpicx.Throw(propagated(err, 7))
	if isFuture {
		done, _ := f.Test()
		require.True(t, done)
	}
	return exchange(ctx, world, 0)
}

// P7 for Test: while an error is on its way a Wait would block, so Test says false, even of a
// future that WaitAny has returned. The rank has then joined the round (P2), so the error comes,
// and after it the result.
func TestP7TestAfterWaitAny(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 1:
			mpicx.Send(world, []int{42}, 0, 1).MustWait(ctx)
			time.Sleep(time.Second)
			return propagated(world.SignalError(ctx, 3), 3)
		case 2: // computes, and so delays the verdict
			time.Sleep(3 * time.Second)
			return propagated(world.Barrier().Wait(ctx), 3)
		}
		got := []int{0}
		never, f := mpicx.Recv(world, []int{0}, 2, 1), mpicx.Recv(world, got, 1, 1)
		i, err := future.WaitAny(ctx, never, f)
		require.True(t, i == 1 && err == nil, "%v", err)
		for _, want := range []struct {
			wait time.Duration
			done bool
			code []int
		}{
			{0, true, nil},
			{2 * time.Second, false, nil},     // the notice is here
			{2 * time.Second, true, []int{3}}, // the verdict is here
			{0, true, nil},
		} {
			time.Sleep(want.wait)
			done, err := f.Test()
			require.Equal(t, want.done, done)
			if want.code == nil {
				require.NoError(t, err)
			} else {
				mpicx.Throw(propagated(err, want.code...))
			}
		}
		return same("the message", got, []int{42})
	})
}
