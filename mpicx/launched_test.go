package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
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

// fakeTime skips a test in which time passes, or has to stand still until all ranks are blocked.
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

// share returns process 0's value.
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
