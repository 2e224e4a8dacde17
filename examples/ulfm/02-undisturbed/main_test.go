package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/examples/ulfm/lessontest"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Only the victim's partner gets an error (H1).
func TestPairs(t *testing.T) {
	played, points := []int{0, 1, 3, rounds - 1}, []string{""}
	lessontest.OneDies(t, []int{2, 4, 5, 8}, played, points, func(t *testing.T, size int, f lesson.Fault) {
		if f.Rank == size&^1 {
			return // it has no partner, and does not play
		}
		want := ""
		for r := range size {
			partner := r ^ 1
			switch {
			case r == f.Rank:
			case partner == size:
				want += fmt.Sprintf("rank %d: has no partner\n", r)
			case partner == f.Rank:
				want += fmt.Sprintf("rank %d: %d rounds with rank %d, then mpicx: processes of ranks [%d] have died\n", r, f.Step, partner, partner)
			default:
				want += fmt.Sprintf("rank %d: %d rounds with rank %d\n", r, rounds, partner)
			}
		}
		require.Equal(t, want, lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
			return pairs(ctx, world, out, lesson.Faults{f})
		}))
	})
}
