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

// For any rank that dies at any point, the others complete the series.
func TestOneDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, way := range ways {
		for _, size := range []int{2, 3, 5} {
			for victim := range size {
				for _, step := range []int{1, members - 1, members} {
					for _, point := range points {
						t.Run(fmt.Sprintf("%s %d of %d in %d %s", name, victim, size, step, point), func(t *testing.T) {
							said := lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
								return way(ctx, world, out, lesson.Faults{{Rank: victim, Step: step, Point: point}})
							})
							require.GreaterOrEqual(t, strings.Count(said, series), size-1, said)
						})
					}
				}
			}
		}
	}
}

// The same if a second rank dies, even in the repair.
func TestTwoDie(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const size, step = 4, 3
	for name, way := range ways {
		for a := range size {
			for b := range a {
				for _, p := range points {
					for _, q := range points {
						faults := lesson.Faults{{Rank: a, Step: step, Point: p}, {Rank: b, Step: step, Point: q}, {Rank: b, Step: step + 1, Point: q}}
						t.Run(fmt.Sprint(name, faults), func(t *testing.T) {
							said := lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
								return way(ctx, world, out, faults)
							})
							require.GreaterOrEqual(t, strings.Count(said, series), size-2, said)
						})
					}
				}
			}
		}
	}
}
