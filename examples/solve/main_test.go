package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// solve runs the example and returns what it printed.
func solve(t *testing.T, respawn bool, observe func(*mpicx.Comm, int) error) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	printed := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		printed <- string(text)
	}()
	c := &config{matrix: "../../testdata/matrices/poisson3d-20.mtx.gz", ranks: 5, spares: 1, respawn: respawn, every: 10, tol: 1e-8, observe: observe}
	err = c.run(context.Background())
	os.Stdout = stdout
	require.NoError(t, w.Close())
	return <-printed, err
}

// iterations returns the beginning of the last line.
func iterations(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	n, _, ok := strings.Cut(lines[len(lines)-1], " iterations, |b-Ax|/|b| = ")
	require.True(t, ok, text)
	return n
}

// once calls strike at each of the ranks, the first time that the rank has done that many
// iterations.
func once(at int, strike func(*mpicx.Comm) error, ranks ...int) func(*mpicx.Comm, int) error {
	struck := make([]atomic.Bool, 16)
	return func(comm *mpicx.Comm, iterations int) error {
		for _, r := range ranks {
			if iterations == at && comm.Rank() == r && !struck[r].Swap(true) {
				return strike(comm)
			}
		}
		return nil
	}
}

func twice(first, second func(*mpicx.Comm, int) error) func(*mpicx.Comm, int) error {
	return func(comm *mpicx.Comm, iterations int) error {
		return errors.Join(first(comm, iterations), second(comm, iterations))
	}
}

func die(comm *mpicx.Comm) error { inject.Die(comm); return nil }

// Failures change nothing in the results: the iteration continues as it would have without them.
func TestGoesOn(t *testing.T) {
	text, err := solve(t, false, nil)
	require.NoError(t, err)
	want := iterations(t, text)
	for _, test := range []struct {
		name    string
		strike  func(*mpicx.Comm, int) error
		expect  string // a regular expression: a checkpoint may not have been complete yet
		ulfm    bool
		respawn bool
	}{
		{"error", once(27, func(*mpicx.Comm) error { return errors.New("no table") }, 2),
			`attempt 1 on 5 ranks, after: mpicx: error propagated from rank 2: no table\n8000 rows on 5 ranks, from iteration [12]0`, false, false},
		{"death", once(27, die, 2), "8000 rows on 5 ranks, from iteration [12]0", true, false},
		{"death of the first", once(27, die, 0), "8000 rows on 5 ranks, from iteration [12]0", true, false},
		{"more deaths than spares", twice(once(17, die, 1), once(37, die, 3)), "8000 rows on 4 ranks, from iteration [123]0", true, false},
		{"death before the first checkpoint", once(5, die, 4), "8000 rows on 5 ranks, from iteration 0\n.*\n8000 rows on 5 ranks, from iteration 0", true, false},
		{"deaths of neighbours at once", once(27, die, 1, 2), "attempt 1", true, false},
		{"more deaths than spares, with fresh ranks", twice(once(17, die, 0, 1), once(37, die, 0, 3)), `attempt 2 on 5 ranks`, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.ulfm && mpicx.Backend != "ulfm" {
				t.Skip("needs a build with -tags ulfm")
			}
			text, err := solve(t, test.respawn, test.strike)
			require.NoError(t, err, text)
			require.Regexp(t, test.expect, text)
			require.Equal(t, want, iterations(t, text), text)
		})
	}
}

func TestNoFile(t *testing.T) {
	c := &config{matrix: "nowhere.mtx", ranks: 3, every: 10, tol: 1e-8}
	err := c.run(context.Background())
	require.ErrorContains(t, err, "nowhere.mtx")
	require.Equal(t, 1, strings.Count(err.Error(), "recovery: given up after 1 attempts"), err)
}
