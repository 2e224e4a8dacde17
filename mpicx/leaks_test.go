package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// An interrupted collective operation frees all its buffers and requests: after 10,000 of
// them, of every kind and size, the ranks have no request, no message that nobody receives, no
// pinned memory, and no goroutine more.
func TestInterruptedCollectivesLeaveNothing(t *testing.T) {
	rounds := 10000
	if testing.Short() || buildtags.Race {
		rounds = 2000
	}
	for _, n := range fitting(4, 2) {
		var before, after runtime.MemStats // of rank 0
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			b := newBuffers(world.Size())
			goroutines := 0
			for i := range rounds {
				mpicx.Throw(explain(b.interrupted(ctx, world, i), "round %d", i))
				if i == rounds/10 {
					goroutines = runtime.NumGoroutine()
				}
				if world.Rank() == 0 && i == rounds/10 {
					runtime.GC()
					runtime.ReadMemStats(&before)
				}
			}
			world.Barrier().MustWait(ctx)
			return settled(func() error {
				if requests, messages := world.Held(); requests+messages > 0 {
					return fmt.Errorf("%d requests and %d messages are left", requests, messages)
				}
				if world.Rank() == 0 { // a leak does not go away; what is under way, also from tests before, does
					runtime.GC()
					runtime.ReadMemStats(&after)
					if grown := int64(after.HeapObjects) - int64(before.HeapObjects); grown > int64(rounds) {
						return fmt.Errorf("%d objects more after %d rounds", grown, rounds)
					}
				}
				if now := runtime.NumGoroutine(); now > goroutines+2 {
					return fmt.Errorf("%d goroutines, where there were %d", now, goroutines)
				}
				return nil
			})
		}, mpicx.WithRanks(n)))
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20), "bytes that %d rounds have left", rounds)
		require.Zero(t, mpicx.Underway(), "what the transport has")
	}
}

// settled calls check until it returns nil, or for a minute.
func settled(check func() error) (err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

// buffers are one rank's.
type buffers struct{ send, recv, all, sent []int }

const mostElements = 20_000

func newBuffers(n int) buffers {
	return buffers{make([]int, mostElements), make([]int, mostElements), make([]int, n*mostElements), make([]int, n*mostElements)}
}

// overwrite writes to all of them, which are the library's no more.
func (b buffers) overwrite(i int) {
	for _, buf := range [][]int{b.send, b.recv, b.all, b.sent} {
		buf[i%len(buf)], buf[len(buf)-1] = i, i
	}
}

// begin begins a collective operation on as many elements.
func (b buffers) begin(c *mpicx.Comm, kind, length int) future.Waiter {
	n := c.Size()
	send, recv, all, sent := b.send[:length], b.recv[:length], b.all[:n*length], b.sent[:n*length]
	sum := func(x, y int) int { return x + y }
	switch kind % 12 {
	case 0:
		return c.Barrier()
	case 1:
		return mpicx.Bcast(c, send, n-1)
	case 2:
		return mpicx.Reduce(c, send, recv, mpicx.Sum, n-1)
	case 3:
		return mpicx.Allreduce(c, send, recv, mpicx.Sum)
	case 4:
		return mpicx.AllreduceFunc(c, send[:min(length, 100)], recv[:min(length, 100)], sum)
	case 5:
		return mpicx.ReduceScatterBlock(c, sent, recv, mpicx.Sum)
	case 6:
		return mpicx.Allgather(c, send, all)
	case 7:
		return mpicx.Allgatherv(c, send, all, slices.Repeat([]int{length}, n))
	case 8:
		return mpicx.Alltoall(c, sent, all)
	case 9:
		return mpicx.Gather(c, send, all, 0)
	case 10:
		return mpicx.Scatter(c, sent, recv, 0)
	default:
		return mpicx.Scan(c, send, recv, mpicx.Max)
	}
}

// interrupted has all ranks begin an operation, and then a barrier; but one signals an error in its
// place, which all get.
func (b buffers) interrupted(ctx context.Context, world *mpicx.Comm, round int) error {
	length := []int{1, 100, 1000, mostElements}[round/12%4]
	signals := world.Rank() == round/5%world.Size()
	if !signals || round%2 == 0 { // else nobody can have the result
		b.begin(world, round, length)
	}
	if signals {
		err := propagated(world.SignalError(ctx, round), round)
		b.overwrite(round)
		return err
	}
	err := world.Barrier().Wait(ctx)
	b.overwrite(round)
	return propagated(err, round)
}

// A rank has made a wrong call, and no Wait has reported that. Run ends the rank with the call's
// error, and the rank that waits for its message learns why it does not come.
func TestWrongCallThatNobodyWaitsFor(t *testing.T) {
	if processes != nil {
		t.Skip("looks at the errors of all ranks")
	}
	const reason = "mpicx: Send: rank 99 of world, expected 0 to 1 or ProcNull"
	for _, backend := range []string{"blackchannel", "ulfm"} {
		t.Run(backend, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var peer error
				err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
					if world.Rank() == 0 {
						mpicx.Send(world, []int{1}, 99, 5)
						return nil
					}
					peer = mpicx.Recv(world, []int{0}, 0, 5).Wait(ctx)
					return nil
				}, mpicx.WithRanks(2), hook.Backend[mpicx.Option](backend))
				wrong, ok := errors.AsType[*mpicx.MPIError](err)
				require.True(t, ok, err)
				assert.Equal(t, mpicx.ClassRank, wrong.Class)
				assert.ErrorContains(t, err, "nobody has waited for what ended with "+reason)
				assert.ErrorContains(t, peer, reason)
			})
		})
	}
}

// Run does not report a wrong call if the program was told its error, or if an error of all ranks
// excuses it.
func TestWrongCallThatIsExcused(t *testing.T) {
	for name, program := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"waited for": func(ctx context.Context, world *mpicx.Comm) error {
			if mpicx.Send(world, []int{1}, 99, 5).Wait(ctx) == nil {
				return errors.New("no error")
			}
			return nil
		},
		"before an error": func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Send(world, []int{1}, 99, 5)
			_ = world.SignalError(ctx, 1)
			return nil
		},
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Send(world, []int{1}, 99, 5)
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("bad input") })
			return nil
		},
		"to a rank that has returned": func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 0 {
				mpicx.Ssend(world, []int{1}, 1, 5)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBackends(t, 2, func(ctx context.Context, _ string, world *mpicx.Comm) error { return program(ctx, world) })
		})
	}
}

// An Instance has no function that could return the error: Finalize does.
func TestWrongCallBeforeFinalize(t *testing.T) {
	if processes != nil {
		t.Skip("the Instance of this job is that of TestMain")
	}
	i, err := mpicx.Initialize(t.Context(), mpicx.WithRanks(1))
	require.NoError(t, err)
	mpicx.Send(i.World(), []int{1}, 99, 5)
	assert.ErrorContains(t, i.Finalize(t.Context()), "nobody has waited for what ended with mpicx: Send: rank 99")
}
