package lessontest

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Run runs a lesson on the given number of ranks and returns what they said. If a rank hangs or
// returns an error, t fails.
func Run(t *testing.T, ranks int, program lesson.Program) string {
	t.Helper()
	var out lesson.Lines
	mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		return program(ctx, world, &out)
	})
	return out.String()
}

// OneDies runs a test for each number of ranks and each fault of one of them, at each step and point.
func OneDies(t *testing.T, sizes, steps []int, points []string, test func(t *testing.T, size int, fault lesson.Fault)) {
	mpicxtest.NeedsULFM(t)
	for _, size := range sizes {
		for i := range size * len(steps) * len(points) {
			f := lesson.Fault{
				Rank: i / len(points) / len(steps), Step: steps[i/len(points)%len(steps)], Point: points[i%len(points)],
			}
			t.Run(fmt.Sprintf("%d of %d in %d %s", f.Rank, size, f.Step, f.Point), func(t *testing.T) { test(t, size, f) })
		}
	}
}

// TwoDie runs a test for each pair of ranks that die in a step, at each two points: the second, if it
// lives on, in the next step.
func TwoDie(t *testing.T, size, step int, points []string, test func(t *testing.T, faults lesson.Faults)) {
	mpicxtest.NeedsULFM(t)
	for i := range size * size * len(points) * len(points) {
		p, q := points[i%len(points)], points[i/len(points)%len(points)]
		ranks := i / len(points) / len(points)
		a, b := ranks/size, ranks%size
		if a == b {
			continue
		}
		faults := lesson.Faults{{Rank: a, Step: step, Point: p}, {Rank: b, Step: step, Point: q}, {Rank: b, Step: step + 1, Point: q}}
		t.Run(fmt.Sprint(faults), func(t *testing.T) { test(t, faults) })
	}
}
