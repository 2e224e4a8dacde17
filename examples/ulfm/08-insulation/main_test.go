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

// For any rank that dies in any step, the other half is never disturbed, and all learn of the death
// in the end.
func TestInsulation(t *testing.T) {
	for step := 1; step <= steps; step++ {
		lessontest.OneDies(t, []int{2, 3, 4, 5, 6}, []int{step}, []string{""}, func(t *testing.T, size int, f lesson.Fault) {
			said := lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
				return halves(ctx, world, out, lesson.Faults{f})
			})
			left, repairs := [2]int{(size + 1) / 2, size / 2}, [2]int{}
			left[f.Rank%2]--
			repairs[f.Rank%2]++
			for half, name := range names {
				want := fmt.Sprintf("%s: %d steps, %d repairs, %d ranks left\n", name, steps, repairs[half], left[half])
				require.Equal(t, left[half], strings.Count(said, want), said)
			}
			require.Equal(t, size-1, strings.Count(said, fmt.Sprintf("dead: [%d]\n", f.Rank)), said)
		})
	}
}

// Deaths in both halves are repaired in each.
func TestBothHalves(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	said := lessontest.Run(t, 6, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return halves(ctx, world, out, lesson.Faults{{Rank: 0, Step: 2}, {Rank: 3, Step: 2}, {Rank: 4, Step: 5}})
	})
	require.Equal(t, 1, strings.Count(said, "solver: 6 steps, 2 repairs, 1 ranks left\n"), said)
	require.Equal(t, 2, strings.Count(said, "analysis: 6 steps, 1 repairs, 2 ranks left\n"), said)
	require.Equal(t, 3, strings.Count(said, "dead: [0 3 4]\n"), said)
}
