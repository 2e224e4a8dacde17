package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/examples/ulfm/lessontest"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// result runs the lesson and returns what the ranks said of the blocks.
func result(t *testing.T, size int, faults lesson.Faults) []string {
	t.Helper()
	said := lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return solve(ctx, world, out, faults)
	})
	var blocks []string
	for line := range strings.Lines(said) {
		_, text, _ := strings.Cut(line, ": ")
		blocks = append(blocks, text)
	}
	slices.Sort(blocks)
	return slices.Compact(blocks)
}

// Without faults, it is Jacobi's method on all cells.
func TestSequential(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for size := 1; size <= 5; size++ {
		u := make([]float64, size*cells+2)
		u[len(u)-1] = 1
		for range steps {
			old := slices.Clone(u)
			for i := 1; i < len(u)-1; i++ {
				u[i] = (old[i-1] + old[i+1]) / 2
			}
		}
		var want []string
		for b := range size {
			want = append(want, fmt.Sprintf("block %d: %.17g\n", b, u[1+b*cells:][:cells]))
		}
		require.Equal(t, want, result(t, size, nil))
	}
}

// For any rank that dies at any point, the others get the same result.
func TestOneDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	var all []int
	for step := range steps + 1 {
		all = append(all, step)
	}
	for size := 2; size <= 5; size++ {
		want := result(t, size, nil)
		lessontest.OneDies(t, []int{size}, all, points, func(t *testing.T, size int, f lesson.Fault) {
			require.Equal(t, want, result(t, size, lesson.Faults{f}))
		})
	}
}

// Two deaths lead to the same result or, if the two ranks were buddies, to a lost block.
func TestTwoDie(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const size = 5
	want := result(t, size, nil)
	lost := 0
	lessontest.TwoDie(t, size, 6, points, func(t *testing.T, faults lesson.Faults) {
		got := result(t, size, faults)
		if slices.Equal(want, got) {
			return
		}
		lost++
		require.Len(t, got, 1, "%v", got)
		require.Contains(t, got[0], "is lost with its copy")
		a, b := faults[0].Rank, faults[1].Rank
		require.True(t, (a+1)%size == b || (b+1)%size == a, "%v, which are no buddies: %v", faults, got)
	})
	require.NotZero(t, lost)
}
