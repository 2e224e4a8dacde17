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

// Every survivor is told which rank died.
func TestOneDies(t *testing.T) {
	lessontest.OneDies(t, []int{2, 3, 4, 9}, []int{0}, []string{""}, func(t *testing.T, size int, f lesson.Fault) {
		want := ""
		for r := range size {
			if r != f.Rank {
				want += fmt.Sprintf("rank %d: mpicx: processes of ranks [%d] have died\n", r, f.Rank)
				want += fmt.Sprintf("rank %d: I live on, without [%d] of %d\n", r, f.Rank, size)
			}
		}
		require.Equal(t, want, lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
			return oneDies(ctx, world, out, f.Rank)
		}))
	})
}
