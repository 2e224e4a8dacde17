package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// small is a sheet whose lowest eigenvalues have converged after 300 iterations.
var small = []string{"-size", "24x20", "-disorder", "1", "-iterations", "300", "-checkpoint", "50", "-json"}

func solved(t *testing.T, args ...string) *result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), slices.Concat(small, args), &stdout, &stderr), "%s", &stderr)
	r := new(result)
	require.NoError(t, json.Unmarshal(stdout.Bytes(), r))
	return r
}

func TestWithoutFailures(t *testing.T) {
	r := solved(t, "-ranks", "5")
	require.InDeltaSlice(t, distinct(spectrum(t, r.Sheet))[:4], r.Eigenvalues, 1e-10)
	require.Equal(t, 300, r.Iterations)
	require.Equal(t, 1, r.Attempts)
	require.Zero(t, r.Seconds.Redoing)
}

// For any deaths at any time, the eigenvalues are those of an undisturbed run. Spares take the
// places of the dead or, with -respawn, fresh ranks. Without, the others continue with fewer ranks.
func TestEigenvaluesAfterFailures(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	undisturbed := solved(t, "-ranks", "6")
	for _, c := range []struct {
		name, args string
		replaced   []int // nil: fewer ranks continue
	}{
		{"one", "-spares 3 -kill 3@120", []int{3}},
		{"before the first checkpoint", "-spares 3 -kill 0@20", []int{0}},
		{"two", "-spares 3 -kill 3@120 -kill 0@220", []int{0, 3}},
		{"three", "-spares 3 -kill 3@75 -kill 0@149 -kill 5@299", []int{0, 3, 5}},
		{"three in the same place", "-spares 3 -kill 2@75 -kill 2@76 -kill 2@260", []int{2}},
		{"three at once", "-spares 3 -kill 1@130 -kill 3@130 -kill 5@130", []int{1, 3, 5}},
		{"a rank and its partner", "-spares 3 -kill 2@130 -kill 3@130", []int{2, 3}},
		{"three at once, with Reed-Solomon codes", "-spares 3 -store rs -copies 3 -kill 0@130 -kill 1@130 -kill 2@130", []int{0, 1, 2}},
		{"three at once, with files", "-spares 3 -store dir -dir " + filepath.ToSlash(t.TempDir()) + " -kill 0@130 -kill 1@130 -kill 2@130", []int{0, 1, 2}},
		{"without checkpoints", "-spares 3 -checkpoint 0 -kill 4@290", []int{4}},
		{"fresh ranks, more than there are", "-respawn -kill 0@60 -kill 1@110 -kill 2@160 -kill 0@210 -kill 1@260 -kill 2@290 -kill 3@299", []int{0, 1, 2, 3}},
		{"fresh ranks, with Reed-Solomon codes", "-respawn -store rs -kill 0@60 -kill 1@110 -kill 2@160 -kill 0@210 -kill 1@260 -kill 2@290 -kill 3@299", []int{0, 1, 2, 3}},
		{"no spare", "-kill 3@120", nil},
		{"no spare before the first checkpoint", "-kill 3@20", nil},
		{"too few spares", "-spares 1 -kill 3@120 -kill 0@220", nil},
		{"too few spares, and one more death", "-spares 1 -kill 3@120 -kill 0@220 -kill 5@220 -kill 1@290", nil},
		{"too few spares for three at once", "-spares 2 -kill 0@120 -kill 2@120 -kill 4@120", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := solved(t, append([]string{"-ranks", "6"}, strings.Fields(c.args)...)...)
			require.InDeltaSlice(t, undisturbed.Eigenvalues, r.Eigenvalues, 1e-10)
			if c.replaced != nil {
				require.Equal(t, c.replaced, r.Replaced)
			}
			require.Equal(t, c.replaced == nil, len(r.Gone) > 0)
			require.Equal(t, 6-len(r.Gone), r.Ranks)
			require.Equal(t, 300, r.Iterations)
			require.Positive(t, r.Seconds.Redoing)
		})
	}
}

// A job continues from an earlier job's files, if the problem is the same, also with a different
// division of the rows.
func TestFilesOfAnEarlierJob(t *testing.T) {
	files := []string{"-store", "dir", "-dir", filepath.ToSlash(t.TempDir())}
	undisturbed := solved(t, "-ranks", "3").Eigenvalues
	solved(t, append(files, "-ranks", "3", "-iterations", "120")...)
	require.Equal(t, undisturbed, solved(t, append(files, "-ranks", "3")...).Eigenvalues)
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(t.Context(), slices.Concat(small, files, []string{"-ranks", "3", "-seed", "7"}), &stdout, &stderr))
	require.Contains(t, stderr.String(), "expected {Width:24 Height:20 Open:false Disorder:1 Seed:7}")
	for _, ranks := range []string{"1", "2", "7"} {
		require.InDeltaSlice(t, undisturbed, solved(t, append(files, "-ranks", ranks)...).Eigenvalues, 1e-10)
	}
}

func TestShow(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-size", "12x12", "-iterations", "100", "-ranks", "2"}, &stdout, &stderr), "%s", &stderr)
	require.Contains(t, stdout.String(), "graphene, 12 x 12 cells, 288 rows on 2 ranks: 100 iterations\n  -10.338000000000 eV\n")
	require.Contains(t, stdout.String(), "computing\n")

	dir := t.TempDir()
	r := solved(t, "-ranks", "2", "-history", "3", "-timeline", dir)
	require.Len(t, r.History, 3)
	require.Equal(t, 100, r.History[0].Iterations)
	require.Equal(t, moment{300, r.Eigenvalues}, r.History[2])
	timelines, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, timelines, 1, "one of each process")
}

func TestOptions(t *testing.T) {
	for want, args := range map[string]string{
		`argument "x", expected flags alone`:                                                  "x",
		`-size "3", expected such as 200x100`:                                                 "-size 3",
		`-size "3x4x5", expected such as 200x100`:                                             "-size 3x4x5",
		`-size 2x9, expected at least 3 cells each way, and at most 2147483648 atoms`:         "-size 2x9",
		`-size 0x9, expected at least 1 cells each way, and at most 2147483648 atoms`:         "-open -size 0x9",
		`-size 99999x99999, expected at least 3 cells each way, and at most 2147483648 atoms`: "-size 99999x99999",
		`-ranks -1, expected at least 0`:                                                      "-ranks -1",
		`-spares -1, expected at least 0`:                                                     "-spares -1",
		`-iterations 0, expected at least 1`:                                                  "-iterations 0",
		`-eigenvalues 0, expected at least 1`:                                                 "-eigenvalues 0",
		`-checkpoint -1, expected at least 0`:                                                 "-checkpoint -1",
		`-copies 0, expected at least 1`:                                                      "-copies 0",
		`-kill 3@3500, expected an iteration below 3500`:                                      "-kill 3@3500",
		`invalid value "3" for flag -kill: expected a rank and an iteration, such as 3@1200`:  "-kill 3",
		`-store "tape", expected partner, rs or dir`:                                          "-store tape",
		`-store dir with -dir "", expected a folder for -store dir alone`:                     "-store dir",
		`-store rs with -dir "x", expected a folder for -store dir alone`:                     "-store rs -dir x",
		`-detector "stethoscope", expected ring or ping`:                                      "-detector stethoscope",
		`-history -1, expected at least 0`:                                                    "-history -1",
		`mpicx: Run: detector: period -1s, expected more than 0`:                              "-detector ping -period -1s",
	} {
		var stdout, stderr bytes.Buffer
		require.NotZero(t, run(t.Context(), strings.Fields(args), &stdout, &stderr), args)
		require.Equal(t, "lanczos: "+want+"\n", stderr.String())
		require.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-h"}, &stdout, &stderr))
	require.Equal(t, usage, stdout.String())
	if mpicx.Backend != "ulfm" {
		require.Equal(t, 2, run(t.Context(), []string{"-kill", "1@5"}, &stdout, &stderr))
		require.Equal(t, "lanczos: -kill: no rank would notice, expected a build with -tags ulfm\n", stderr.String())
		return
	}
	require.Equal(t, 1, run(t.Context(), []string{"-kill", "2@5", "-ranks", "2"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "-kill 2@5, expected a rank below 2")
}
