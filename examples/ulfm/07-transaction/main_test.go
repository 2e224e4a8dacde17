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

func run(t *testing.T, size int, faults ...lesson.Fault) string {
	t.Helper()
	return lessontest.Run(t, size, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return transactions(ctx, world, out, faults)
	})
}

// final is the result in the accounts, after any deaths.
const final = ": version 3 is [260 190 270 370 470 570 670]"

// histories returns what each rank that lived to the end said, and how many ranks said it.
func histories(said string) map[string]int {
	all := make(map[string]string)
	for line := range strings.Lines(said) {
		rank, text, _ := strings.Cut(line, ": ")
		all[rank] += text
	}
	ended := make(map[string]int)
	for _, h := range all {
		if strings.Contains(h, "version 3 is") {
			ended[h]++
		}
	}
	return ended
}

// ends checks that the survivors have the same versions in the same order, and end with the same
// accounts as without a death.
func ends(t *testing.T, size int, faults ...lesson.Fault) {
	said := run(t, size, faults...)
	ended := histories(said)
	require.Len(t, ended, 1, said)
	for h, n := range ended {
		require.GreaterOrEqual(t, n, size-len(faults), said)
		require.Equal(t, final, last(h))
	}
}

// Any rank may die at any point.
func TestOneDies(t *testing.T) {
	lessontest.OneDies(t, []int{2, 3, 5}, []int{0, 1, 2}, points, func(t *testing.T, size int, f lesson.Fault) { ends(t, size, f) })
}

// The same if a second rank dies, even in the repair.
func TestTwoDie(t *testing.T) {
	lessontest.TwoDie(t, 4, 1, points, func(t *testing.T, faults lesson.Faults) { ends(t, 4, faults[:2]...) })
}

func TestNobodyDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for size := 1; size <= 9; size++ {
		require.Equal(t, final, last(run(t, size)))
	}
}

// last returns the last line.
func last(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	_, commit, _ := strings.Cut(lines[len(lines)-1], "commit")
	return commit
}
