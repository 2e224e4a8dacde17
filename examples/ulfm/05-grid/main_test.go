package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/examples/ulfm/lessontest"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func run(t *testing.T, size int, faults ...lesson.Fault) string {
	t.Helper()
	return lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return sums(ctx, world, out, faults)
	})
}

// For any rank that dies at any point, all hear of it, and all agree on how to continue.
func TestAllHear(t *testing.T) {
	sizes, all := []int{2, 3, 4, 6}, make([]int, steps)
	for step := range all {
		all[step] = step
	}
	lessontest.OneDies(t, sizes, []int{0}, atEnds, hear)
	lessontest.OneDies(t, sizes, all, points, hear)
}

func hear(t *testing.T, size int, f lesson.Fault) {
	said := run(t, size, f)
	_, first, _ := strings.Cut(said, ": ")
	first, _, _ = strings.Cut(first, "\n")
	require.Equal(t, size-1, strings.Count(said, first+"\n"), said)
	needed := f.Step < steps-1 || height(size) > 1 && f.Point != "in the column" && f.Point != "after the column"
	if needed && f.Point != "in the agreement" {
		require.Equal(t, fmt.Sprintf("agreed: the grid is broken; dead: [%d]", f.Rank), first)
	}
}

// Two ranks die at once, anywhere in the grid.
func TestTwoDie(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const size = 6
	for a := range size {
		for b := range a {
			for _, point := range points {
				said := run(t, size, lesson.Fault{Rank: a, Step: 1, Point: point}, lesson.Fault{Rank: b, Step: 1, Point: "between row and column"})
				broken := strings.Count(said, "agreed: the grid is broken")
				require.Equal(t, strings.Count(said, "agreed"), broken, said)
				require.GreaterOrEqual(t, broken, size-2) // the second may have heard of the first death before it dies
			}
		}
	}
}

func TestNobodyDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, size := range []int{1, 2, 4, 5, 6, 9} {
		n := size * (size - 1) / 2
		for range steps - 1 {
			n *= size
		}
		require.Equal(t, size, strings.Count(run(t, size), fmt.Sprintf("agreed: the sum is %d; dead: []\n", n)))
	}
}
