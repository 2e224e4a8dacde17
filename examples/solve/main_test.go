package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
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

// solve runs the example on 5 ranks and returns what it printed.
func solve(t *testing.T, respawn bool, observe func(*mpicx.Comm, int) error) (string, error) {
	t.Helper()
	return run(t, &config{ranks: 5, spares: 1, respawn: respawn, observe: observe})
}

func run(t *testing.T, c *config) (string, error) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func(stdout *os.File) { os.Stdout = stdout }(os.Stdout)
	os.Stdout = out
	c.matrix, c.every, c.tol = "../../testdata/matrices/poisson3d-20.mtx.gz", 10, 1e-8
	err = c.run(t.Context())
	require.NoError(t, out.Close())
	text, readErr := os.ReadFile(out.Name())
	require.NoError(t, readErr)
	return string(text), err
}

// iterations returns the beginning of the last line.
func iterations(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	n, _, ok := strings.Cut(lines[len(lines)-1], " iterations, |b-Ax|/|b| = ")
	require.True(t, ok, text)
	return n
}

// A moment is when a rank fails: after a number of iterations.
type moment struct{ iterations, rank int }

// failures has ranks return an error at the moments, or die if it is nil, each once.
func failures(err error, at ...moment) func(*mpicx.Comm, int) error {
	var past sync.Map
	return func(comm *mpicx.Comm, iterations int) error {
		now := moment{iterations, comm.Rank()}
		if _, again := past.LoadOrStore(now, true); again || !slices.Contains(at, now) {
			return nil
		}
		if err == nil {
			inject.Die(comm)
		}
		return err
	}
}

// Failures change nothing in the results: the iteration continues as it would have without them.
func TestGoesOn(t *testing.T) {
	text, err := solve(t, false, nil)
	require.NoError(t, err)
	want := iterations(t, text)
	for _, test := range []struct {
		name    string
		fails   func(*mpicx.Comm, int) error
		expect  string // a regular expression: a checkpoint may not have been complete yet
		ulfm    bool
		respawn bool
	}{
		{"error", failures(errors.New("no table"), moment{27, 2}),
			`attempt 1 on 5 ranks, after: mpicx: error propagated from rank 2: no table\n8000 rows on 5 ranks, from iteration [12]0`, false, false},
		{"death", failures(nil, moment{27, 2}), "8000 rows on 5 ranks, from iteration [12]0", true, false},
		{"death of the first", failures(nil, moment{27, 0}), "8000 rows on 5 ranks, from iteration [12]0", true, false},
		{"more deaths than spares", failures(nil, moment{17, 1}, moment{37, 3}), "8000 rows on 4 ranks, from iteration [123]0", true, false},
		{"death before the first checkpoint", failures(nil, moment{5, 4}), "8000 rows on 5 ranks, from iteration 0\n.*\n8000 rows on 5 ranks, from iteration 0", true, false},
		{"deaths of neighbours at once", failures(nil, moment{27, 1}, moment{27, 2}), "attempt 1", true, false},
		{"more deaths than spares, with fresh ranks", failures(nil, moment{17, 0}, moment{17, 1}, moment{37, 0}, moment{37, 3}), `attempt 2 on 5 ranks`, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.ulfm && mpicx.Backend != "ulfm" {
				t.Skip("needs a build with -tags ulfm")
			}
			text, err := solve(t, test.respawn, test.fails)
			require.NoError(t, err, text)
			require.Regexp(t, test.expect, text)
			require.Equal(t, want, iterations(t, text), text)
		})
	}
}

// The residuals are the same on any number of ranks, bit by bit, also if it changes.
func TestExact(t *testing.T) {
	residuals := func(c config) []string {
		c.exact, c.residuals = true, true
		text, err := run(t, &c)
		require.NoError(t, err, text)
		lines := regexp.MustCompile(`iteration \d+: .*`).FindAllString(text, -1)
		slices.Sort(lines)
		return slices.Compact(lines) // those after a checkpoint are there twice
	}
	want := residuals(config{ranks: 1})
	require.Greater(t, len(want), 30)
	for ranks := 2; ranks <= 7; ranks++ {
		require.Equal(t, want, residuals(config{ranks: ranks}), ranks)
	}
	if mpicx.Backend == "ulfm" {
		require.Equal(t, want, residuals(config{ranks: 7, spares: 1, observe: failures(nil, moment{17, 1}, moment{27, 4}, moment{37, 3})}))
	}
}

func TestNoFile(t *testing.T) {
	c := &config{matrix: "nowhere.mtx", ranks: 3, every: 10, tol: 1e-8}
	err := c.run(t.Context())
	require.ErrorContains(t, err, "nowhere.mtx")
	require.Equal(t, 1, strings.Count(err.Error(), "recovery: given up after 1 attempts"), err)
}
