package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/examples/ulfm/lessontest"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Only the victim's partner gets an error (H1).
func TestPairs(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, size := range []int{2, 4, 5, 8} {
		for victim := range size &^ 1 {
			for _, played := range []int{0, 1, 3, rounds - 1} {
				t.Run(fmt.Sprintf("%d of %d after %d", victim, size, played), func(t *testing.T) {
					want := ""
					for r := range size {
						partner := r ^ 1
						switch {
						case r == victim:
						case partner == size:
							want += fmt.Sprintf("rank %d: has no partner\n", r)
						case partner == victim:
							want += fmt.Sprintf("rank %d: %d rounds with rank %d, then mpicx: processes of ranks [%d] have died\n", r, played, partner, partner)
						default:
							want += fmt.Sprintf("rank %d: %d rounds with rank %d\n", r, rounds, partner)
						}
					}
					require.Equal(t, want, lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
						return pairs(ctx, world, out, lesson.Faults{{Rank: victim, Step: played}})
					}))
				})
			}
		}
	}
}
