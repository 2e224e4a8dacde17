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

// Every survivor is told which rank died.
func TestOneDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, size := range []int{2, 3, 4, 9} {
		for victim := range size {
			t.Run(fmt.Sprintf("%d of %d", victim, size), func(t *testing.T) {
				want := ""
				for r := range size {
					if r != victim {
						want += fmt.Sprintf("rank %d: mpicx: processes of ranks [%d] have died\n", r, victim)
						want += fmt.Sprintf("rank %d: I live on, without [%d] of %d\n", r, victim, size)
					}
				}
				require.Equal(t, want, lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
					return oneDies(ctx, world, out, victim)
				}))
			})
		}
	}
}
