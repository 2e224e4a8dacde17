package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/examples/ulfm/lessontest"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What main shows: some ranks get the error, and all decide alike.
func TestSomeSeeIt(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	require.Equal(t, `rank 0: has the table
rank 0: agreed: not all living ranks have the table, continue without it
rank 1: has the table
rank 1: agreed: not all living ranks have the table, continue without it
rank 3: has no table: mpicx: processes of ranks [2] have died
rank 3: agreed: not all living ranks have the table, continue without it
`, run(t, 4, lesson.Fault{Rank: 2, Point: late}))
}

// For any rank that dies at any point, all survivors take the same branch. They continue with the
// table only if each of them has it.
func TestAllDecideAlike(t *testing.T) {
	lessontest.OneDies(t, []int{2, 3, 4, 5, 6, 7, 8, 9}, []int{0}, points, func(t *testing.T, size int, f lesson.Fault) {
		if f.Point == late && f.Rank <= 1 {
			return // the victim would wait for itself, or rank 1 for the victim
		}
		said := run(t, size, f)
		without := strings.Count(said, "agreed: not all")
		with := strings.Count(said, "agreed: all living ranks have the table, continue with 42")
		require.Equal(t, size-1, with+without, said)
		require.True(t, with == 0 || without == 0, said)
		require.Equal(t, strings.Contains(said, "has no table"), without > 0, said)
	})
}

func TestNobodyDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	require.Equal(t, 5, strings.Count(run(t, 5, lesson.Fault{Rank: -1}), "continue with 42"))
}

func run(t *testing.T, size int, fault lesson.Fault) string {
	return lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return broadcast(ctx, world, out, fault)
	})
}
