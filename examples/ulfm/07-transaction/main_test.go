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

// For any rank that dies at any point, the survivors have the same versions in the same order, and
// end with the same accounts as without a death.
func TestOneDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, size := range []int{2, 3, 5} {
		for victim := range size {
			for step := range versions {
				for _, point := range points {
					t.Run(fmt.Sprintf("%d of %d in %d %s", victim, size, step, point), func(t *testing.T) {
						said := run(t, size, lesson.Fault{Rank: victim, Step: step, Point: point})
						ended := histories(said)
						require.Len(t, ended, 1, said)
						for h, n := range ended {
							require.GreaterOrEqual(t, n, size-1, said)
							require.Equal(t, final, last(h))
						}
					})
				}
			}
		}
	}
}

// The same if a second rank dies, even in the repair.
func TestTwoDie(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const size = 4
	for a := range size {
		for b := range a {
			for _, p := range points {
				for _, q := range points {
					t.Run(fmt.Sprintf("%d %s, %d %s", a, p, b, q), func(t *testing.T) {
						said := run(t, size, lesson.Fault{Rank: a, Step: 1, Point: p}, lesson.Fault{Rank: b, Step: 1, Point: q})
						ended := histories(said)
						require.Len(t, ended, 1, said)
						for h, n := range ended {
							require.GreaterOrEqual(t, n, size-2, said)
							require.Equal(t, final, last(h))
						}
					})
				}
			}
		}
	}
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
