package mpicx_test

import (
	"context"
	"iter"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
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
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return processes != nil && n > hook.Processes() })
}

// Round after round of signal and recovery, with messages of all lengths under way,
// nothing is left behind: no memory, and nothing that MPI has.
func TestNothingIsLeftBehind(t *testing.T) {
	rounds := 1000
	if processes != nil {
		rounds = 10000
	}
	for _, n := range fitting(3, 2) {
		var before, after runtime.MemStats
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me := world.Rank()
			out, in := make([]int, 5000), make([]int, 5000)
			few, none := make([]int, 10), make([]int, 10)
			for round := range rounds {
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
				if err := propagated(err, round); err != nil {
					return err
				}
				if me == 0 && (round == rounds/10 || round == rounds-1) {
					before = after
					runtime.GC()
					runtime.ReadMemStats(&after)
				}
			}
			return exchange(ctx, world, rounds)
		})
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20), "bytes that %d rounds have left", rounds)
		require.Less(t, int64(after.HeapObjects)-int64(before.HeapObjects), int64(rounds), "objects")
		require.Zero(t, hook.Underway(), "what MPI has")
	}
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
