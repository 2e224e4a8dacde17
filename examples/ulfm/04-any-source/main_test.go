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

func run(t *testing.T, size int, faults lesson.Faults) string {
	t.Helper()
	return lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return farm(ctx, world, out, faults)
	})
}

func TestFarm(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, test := range []struct {
		size   int
		faults lesson.Faults
		want   string
	}{
		{2, nil, "the sum of all squares is 506; 0 workers died, with tasks [] in hand"},
		{5, lesson.Faults{{Rank: 2, Step: 1}, {Rank: 4, Step: 1}}, "the sum of all squares is 506; 2 workers died, with tasks [1 3] in hand"},
		{5, lesson.Faults{{Rank: 1, Step: 1}, {Rank: 2, Step: 1}, {Rank: 4, Step: 1}}, "the sum of all squares is 506; 3 workers died, with tasks [0 1 3] in hand"},
		{2, lesson.Faults{{Rank: 1, Step: 11}}, "no worker is left for tasks [11 10]"},
		{3, lesson.Faults{{Rank: 1, Step: 1}, {Rank: 2, Step: 1}}, "no worker is left for tasks ["},
	} {
		t.Run(fmt.Sprint(test.size, test.faults), func(t *testing.T) {
			require.Contains(t, run(t, test.size, test.faults), "rank 0: "+test.want)
		})
	}
}

// If one worker dies at any time, the others do its work. If the manager dies, the workers end as
// well.
func TestAnybody(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for size := 2; size <= 5; size++ {
		for step := 1; step <= tasks; step++ {
			said := run(t, size, lesson.Faults{{Rank: manager, Step: step}})
			require.Equal(t, size-1, strings.Count(said, "the manager is dead"), said)
			for victim := 1; victim < size && size > 2; victim++ {
				require.Contains(t, run(t, size, lesson.Faults{{Rank: victim, Step: step}}), "the sum of all squares is 506")
			}
		}
	}
}
