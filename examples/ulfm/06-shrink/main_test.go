package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/examples/ulfm/lessontest"
	"github.com/mpicx/go-mpicx/mpicx"
)

const series = "[1 4343 5049 4341 5047 4541 4944 4943]\n"

var ways = map[string]func(context.Context, *mpicx.Comm, *lesson.Lines, lesson.Faults) error{
	"by hand": func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
		_, err := byHand(ctx, world, out, faults)
		return err
	},
	"by Guard": func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
		return byGuard(ctx, world, world, out, faults)
	},
}

// completes checks that the ranks complete the series, but for as many as have died.
func completes(t *testing.T, size, deaths int, faults lesson.Faults) {
	for name, way := range ways {
		said := lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
			return way(ctx, world, out, faults)
		})
		require.GreaterOrEqual(t, strings.Count(said, series), size-deaths, "%s: %s", name, said)
	}
}

// For any rank that dies at any point, the others complete the series.
func TestOneDies(t *testing.T) {
	steps := []int{1, members - 1, members}
	lessontest.OneDies(t, []int{2, 3, 5}, steps, points, func(t *testing.T, size int, f lesson.Fault) {
		completes(t, size, 1, lesson.Faults{f})
	})
}

// The same if a second rank dies, even in the repair.
func TestTwoDie(t *testing.T) {
	lessontest.TwoDie(t, 4, 3, points, func(t *testing.T, faults lesson.Faults) { completes(t, 4, 2, faults) })
}
