package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heat runs the example and returns what it printed.
func heat(t *testing.T, c *config) (string, error) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func(stdout *os.File) { os.Stdout = stdout }(os.Stdout)
	os.Stdout = out
	c.cells, c.steps, c.every = 30, 60, 10
	err = c.run(t.Context())
	require.NoError(t, out.Close())
	text, readErr := os.ReadFile(out.Name())
	require.NoError(t, readErr)
	return string(text), err
}

// checksum returns the end of the last line.
func checksum(t *testing.T, text string) string {
	t.Helper()
	_, sum, ok := strings.Cut(text, "checksum ")
	require.True(t, ok, text)
	return sum
}

// A moment is when a rank dies: after a number of steps.
type moment struct{ steps, rank int }

// deaths has ranks die at the moments, each once.
func deaths(at ...moment) func(*mpicx.Comm, int) error {
	var past sync.Map
	return func(comm *mpicx.Comm, steps int) error {
		now := moment{steps, comm.Rank()}
		if _, again := past.LoadOrStore(now, true); !again && slices.Contains(at, now) {
			inject.Die(comm)
		}
		return nil
	}
}

// For any number of ranks and any failures, each cell ends as on one rank.
func TestGoesOn(t *testing.T) {
	text, err := heat(t, &config{ranks: 1})
	require.NoError(t, err)
	require.Regexp(t, `60 steps on 1 ranks, at most \d\.\de-1[4-7] from the exact solution of 0\.\d+, checksum`, text)
	want := checksum(t, text)
	for _, test := range []struct {
		name   string
		config config
		expect string // a regular expression: a checkpoint may not have been complete yet
		ulfm   bool
	}{
		{"undisturbed", config{ranks: 6}, "30×30 cells on 3×2 ranks, from step 0\n60 steps on 6 ranks", false},
		{"error", config{ranks: 4, fail: 27}, `attempt 1, after: mpicx: error propagated from rank 3: injected in step 27\n30×30 cells on 2×2 ranks, from step [12]0`, false},
		{"death", config{ranks: 4, spares: 1, fail: 27, die: true}, "on 2×2 ranks, from step [12]0\n60 steps", true},
		{"death of the first", config{ranks: 4, spares: 1, observe: deaths(moment{27, 0})}, "on 2×2 ranks, from step [12]0\n60 steps", true},
		{"more deaths than ranks, with fresh ranks", config{ranks: 2, respawn: true, observe: deaths(moment{17, 0}, moment{37, 1}, moment{55, 1})}, "on 2×1 ranks, from step [1-5]0\n60 steps", true},
		{"no spare", config{ranks: 6, fail: 27, die: true}, "on 5×1 ranks, from step [12]0\n60 steps", true},
		{"deaths one after the other", config{ranks: 6, spares: 1, observe: deaths(moment{17, 1}, moment{37, 3})}, "on 5×1 ranks, from step [123]0\n60 steps", true},
		{"death before the first checkpoint", config{ranks: 4, spares: 1, observe: deaths(moment{5, 2})}, "from step 0\n.*\n.*from step 0\n60 steps", true},
		{"deaths of neighbours at once", config{ranks: 5, spares: 2, observe: deaths(moment{27, 1}, moment{27, 2})}, "attempt 1", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.ulfm && mpicx.Backend != "ulfm" {
				t.Skip("needs a build with -tags ulfm")
			}
			text, err := heat(t, &test.config)
			require.NoError(t, err, text)
			require.Regexp(t, test.expect, text)
			require.Equal(t, want, checksum(t, text), text)
		})
	}
}

func TestTooFewCells(t *testing.T) {
	c := &config{ranks: 5, cells: 3, steps: 1, every: 1}
	err := c.run(t.Context())
	require.ErrorContains(t, err, "3 cells in each direction, expected one for each of 5 ranks at least")
	require.ErrorContains(t, err, "given up after 1 attempts")
}
