package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// In a job of mpirun's each process runs the tests, in step. What follows is for
// tests that need more than that.

// processes is of all processes; nil: the ranks are goroutines.
var processes *mpicx.Instance

// oneProcess skips a test that looks into all ranks.
func oneProcess(t *testing.T) {
	if processes != nil {
		t.Skip("needs all ranks in one process")
	}
}

// fakeTime skips a test in which time passes, or has to stand still until all ranks
// are blocked.
func fakeTime(t *testing.T) {
	if processes != nil {
		t.Skip("time is real here")
	}
}

// fitting are the numbers of ranks that there are processes for.
func fitting(sizes ...int) []int {
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return processes != nil && n > machine.Processes() })
}

// broken is the error of MPI with which a test ends it.
var broken error

// An error of MPI ends all that is under way, and all that is begun later, typed; an
// error can't be told to peers any more, and does not wait for them.
func TestMPIFails(t *testing.T) {
	if processes == nil || mpicx.Backend == "ulfm" {
		t.Skip("needs MPI, and a process that need not die of it")
	}
	broken = &transport.LibraryError{Call: "MPI_Testsome", Class: int(mpicx.ClassTruncate), Text: "truncated"}
	ctx := t.Context()
	world := processes.World()
	dup := world.Dup().MustGet(ctx)
	alone := world.Split(world.Rank(), 0).MustGet(ctx)
	require.NoError(t, mpicx.Run(ctx, barrier))
	require.NoError(t, world.Barrier().Wait(ctx))
	short := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1)
	long := mpicx.Ssend(dup, make([]int, 100_000), (world.Rank()+1)%world.Size(), 2)
	mpicx.Break(broken)
	for _, f := range []future.Waiter{short, long} {
		err := f.Wait(ctx)
		failed, ok := errors.AsType[*mpicx.MPIError](err)
		require.True(t, ok, "%v", err)
		if strings.Contains(failed.Text, "has died") {
			t.Skip("the other process has met its failure, and ended, before this one")
		}
		require.Equal(t, mpicx.ClassTruncate, failed.Class)
		require.Contains(t, failed.Text, "MPI_Testsome: truncated")
		require.ErrorIs(t, err, broken)
	}
	require.ErrorIs(t, barrier(ctx, alone), broken) // though it needs no message
	require.ErrorIs(t, mpicx.Run(ctx, barrier), broken)
	for _, c := range []*mpicx.Comm{world, dup} {
		err := c.SignalError(ctx, 1)
		require.True(t, corrupted(err), "%v", err)
		require.ErrorIs(t, err, broken)
		require.True(t, corrupted(c.Barrier().Wait(ctx)))
	}
	require.NoError(t, dup.Close(ctx))
}

// Buffers may be part of values that have pointers.
func TestBuffersInsideOfValues(t *testing.T) {
	type grid struct {
		cells []float64
		edge  [4]float64
		face  [20_000]float64
	}
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		mine, other := &grid{cells: make([]float64, 1)}, &grid{cells: make([]float64, 1)}
		mine.edge[3], mine.face[19_999] = float64(me), float64(me)
		err := future.WaitAll(ctx,
			mpicx.Recv(world, other.edge[:], 1-me, 1), mpicx.Recv(world, other.face[:], 1-me, 2),
			mpicx.Send(world, mine.edge[:], 1-me, 1), mpicx.Send(world, mine.face[:], 1-me, 2))
		if other.edge[3] != float64(1-me) || other.face[19_999] != float64(1-me) {
			return fmt.Errorf("got %v, %v (%v)", other.edge, other.face[19_999], err)
		}
		return err
	})
}

// flat goes through round after round, after which nothing is left: no memory, and
// nothing that MPI has.
func flat(t *testing.T, round func(ctx context.Context, world *mpicx.Comm, i int) error) {
	rounds := 10000
	if testing.Short() {
		rounds = 3000
	}
	for _, n := range fitting(3, 2) {
		before, after := most, most
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			for i := range rounds {
				mpicx.Throw(round(ctx, world, i))
				switch {
				case world.Rank() != 0:
				case i == rounds/10:
					before.measure()
				case i >= rounds-20: // what is under way differs from round to round
					after.measure()
				}
			}
			return exchange(ctx, world, rounds)
		})
		require.Less(t, after.bytes-before.bytes, int64(1<<20), "bytes that %d rounds have left", rounds)
		require.Less(t, after.objects-before.objects, int64(10000), "objects") // as many as 300 communicators have: some are under way
		require.Zero(t, mpicx.Underway(), "what MPI has")
	}
}

// A heap is what a process has of memory, at least.
type heap struct{ bytes, objects int64 }

// most is more than any process has.
var most = heap{math.MaxInt64, math.MaxInt64}

// measure lowers h to what the process has now. What has been closed may be forgotten some time later, so
// it looks several times; meanwhile the other ranks work.
func (h *heap) measure() {
	for range 10 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		h.bytes, h.objects = min(h.bytes, int64(m.HeapAlloc)), min(h.objects, int64(m.HeapObjects))
	}
}

// Signal and recovery, with messages of all lengths under way.
func TestSignalsLeaveNothingBehind(t *testing.T) {
	flat(t, func(ctx context.Context, world *mpicx.Comm, round int) error {
		none, few := make([]int, 10), make([]int, 10)
		out, in := make([]int, 5000), make([]int, 5000)
		n, me := world.Size(), world.Rank()
		next, last := (me+1)%n, (me+n-1)%n
		mpicx.Send(world, out, next, 1) // of these some are matched
		mpicx.Recv(world, few, last, 2)
		mpicx.Ssend(world, out[:10], next, 3)
		if round%2 == me%2 {
			mpicx.Recv(world, in, last, 1)
		}
		var err error
		if me == round%n {
			err = world.SignalError(ctx, round)
		} else {
			err = mpicx.Recv(world, none, next, 4).Wait(ctx)
		}
		return propagated(err, round)
	})
}

func TestClosedCommsLeaveNothingBehind(t *testing.T) {
	if mpicx.Backend == "ulfm" && processes != nil {
		t.Skip("they are kept")
	}
	flat(t, func(ctx context.Context, world *mpicx.Comm, _ int) error {
		made, err := world.Dup().Get(ctx)
		if err == nil {
			err = made.Close(ctx)
		}
		return err
	})
}

// share returns what process 0 has.
func share[T any](t *testing.T, v T) T {
	if processes == nil {
		return v
	}
	v, err := mpicx.BcastValue(processes.World(), v, 0).Get(t.Context())
	require.NoError(t, err)
	return v
}

// gather completes what the ranks have found, each its own element. Those of the
// dead stay as they are.
func gather[T any](t *testing.T, all []T) []T {
	if processes == nil || t.Failed() {
		return all
	}
	type of struct {
		Rank  int
		Value T
	}
	world := processes.World()
	mine := of{Rank: world.Rank()}
	if mine.Rank < len(all) {
		mine.Value = all[mine.Rank]
	}
	gathered, err := mpicx.AllgatherValue(world, mine).Get(t.Context())
	if corrupted(err) { // some are dead
		world = world.Shrink().MustGet(t.Context())
		gathered, err = mpicx.AllgatherValue(world, mine).Get(t.Context())
	}
	require.NoError(t, err)
	for _, g := range gathered {
		if g.Rank < len(all) {
			all[g.Rank] = g.Value
		}
	}
	return all
}

// inOrder goes through a map in the order of its keys: in the same at all processes.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
