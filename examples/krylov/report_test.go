package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// An error comes during a recovery after the job has been started again. Some ranks have recovered,
// some have not, and all decide alike.
func TestErrorInRecoveryAfterRestart(t *testing.T) {
	doc := solved(t, "-ranks", "4", "-recovery", "rollback", "-matrix", matrices+"poisson3d-20.mtx.gz",
		"-inject", "rank=1,iter=10,kind=panic", "-inject", "rank=2,recovery=1,kind=error")
	events := doc.Runs[1].Events
	require.Len(t, events, 2)
	for i, rank := range []int{1, 2} {
		require.Equal(t, rank, events[i].Failures[0].Rank)
		require.Equal(t, i == 0, events[i].Corrupted)
		require.NotEmpty(t, events[i].Recovery)
		require.True(t, doc.Runs[1].Injections[i].Detected)
	}
}

// Flipping the highest bit of the exponent makes numbers whose squares overflow.
func TestHugeFlip(t *testing.T) {
	for i := range 2 * 2 * 4 {
		method, recovery, iter := []string{"cg", "bicgstab"}[i%2], []string{"restart", "rollback"}[i/2%2], 1+i/4
		if testing.Short() && iter != 2 {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s/%d", method, recovery, iter), func(t *testing.T) {
			args := []string{"-matrix", matrices + "poisson3d-20.mtx.gz", "-method", method, "-recovery", recovery, "-inject", fmt.Sprintf("rank=3,iter=%d,kind=bitflip,bit=62", iter)}
			doc := solved(t, args...)
			require.Len(t, doc.Runs[1].Events, 1)
			require.Less(t, doc.Runs[1].Iterations, doc.Runs[0].Iterations+60)
			_, out := text(t, args...)
			require.NotContains(t, out, "the fault did not touch")
		})
	}
}

// The text of a Matrix Market file.
func file(t *testing.T, name, text string) string {
	name = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

// A method that can't solve the system breaks down once, at all ranks alike. This is reported, and
// no rank is said to have failed.
func TestBreakdownIsTold(t *testing.T) {
	singular := file(t, "singular.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n")
	nilpotent := file(t, "nilpotent.mtx", "%%MatrixMarket matrix coordinate integer general\n5 5 7\n1 2 1\n1 3 1\n4 5 1\n2 4 2\n2 5 2\n3 4 2\n3 5 2\n")
	for _, c := range []struct{ method, matrix, ranks, want string }{
		{"bicgstab", matrices + "skew-6.mtx", "3", "bicgstab: the length of a step is 0 in iteration 1, expected another"},
		{"bicgstab", singular, "1", "bicgstab: the length of a step is 0 in iteration 1, expected another"},
		{"gmres", singular, "1", "gmres: the last pivot is 0 in iteration 1, expected another: the matrix is singular"},
		{"gmres", singular, "2", "gmres: the last pivot is 0 in iteration 1, expected another: the matrix is singular"},
		{"gmres", nilpotent, "3", "in iteration 3, expected another: the matrix is singular"},
		{"bicgstab", nilpotent, "3", "not converged after "},
	} {
		args := []string{"-method", c.method, "-matrix", c.matrix, "-ranks", c.ranks, "-inject", "none"}
		code, out := text(t, args...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, out, c.want)
		require.Contains(t, out, "FAILED")
		require.NotContains(t, out, "failed      rank")
		_, doc := solve(t, args...)
		require.Empty(t, doc.Runs[0].Events)
	}

	// Kershaw's matrix (J. Comput. Phys. 26, 1978) is positive definite, but its incomplete
	// factorization is not.
	name := file(t, "kershaw.mtx", "%%MatrixMarket matrix coordinate real symmetric\n4 4 8\n1 1 3\n2 1 -2\n2 2 3\n3 2 -2\n3 3 3\n4 1 2\n4 3 -2\n4 4 3\n")
	code, out := text(t, "-matrix", name, "-precond", "blockjacobi", "-ranks", "1", "-inject", "none")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "expected a positive definite preconditioner")
}

func TestOut(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.mtx")
	doc := solved(t, "-out", name, "-timeline", dir, "-rhs", matrices+"hilbert-6-b.mtx", "-matrix", matrices+"hilbert-6.mtx", "-ranks", "2", "-checkpoint", "7", "-gmres-restart", "9", "-method", "gmres", "-inject", "rank=1,iter=2,kind=error")
	x, err := sparse.ReadVector(name)
	require.NoError(t, err)
	require.InDeltaSlice(t, slices.Repeat([]float64{1}, 6), x, 1e-2)
	require.Equal(t, matrices+"hilbert-6-b.mtx", doc.RHS)
	require.Equal(t, []int{7, 9}, []int{doc.Checkpoint, doc.GMRESRestart})
	timelines, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, timelines, 1, "one of each process")
}

// Other programs read -json, such as internal/lab/draw: its names stay.
func TestNamesInJSON(t *testing.T) {
	_, out := text(t, "-json", "-matrix", matrices+"hilbert-6.mtx", "-ranks", "2", "-method", "gmres", "-inject", "rank=1,iter=2,kind=error")
	for _, name := range strings.Fields(`gmresRestart runs name iterations converged solverClaimsConvergence
		trueResidual error residuals injections kind rank iter fired detected iterationsDone events corrupted
		failures message recovery toldSeconds ranks`) {
		require.Contains(t, out, `"`+name+`":`)
	}
}
