package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/examples/krylov/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const matrices = "../../testdata/matrices/"

// document contains the parts of -json that the tests read.
type document struct {
	RHS          string
	Checkpoint   int
	GMRESRestart int
	Runs         []report.Outcome
}

// text runs the program and returns its exit code and its output.
func text(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), args, &stdout, &stderr)
	require.Empty(t, stderr.String())
	return code, stdout.String()
}

// solve runs the program and returns its exit code and its JSON output.
func solve(t *testing.T, args ...string) (code int, doc document) {
	t.Helper()
	code, out := text(t, append(args, "-json")...)
	require.NoError(t, json.Unmarshal([]byte(out), &doc), out)
	return code, doc
}

// solved is solve if the program converges.
func solved(t *testing.T, args ...string) document {
	t.Helper()
	code, doc := solve(t, args...)
	require.Equal(t, exitConverged, code)
	return doc
}

// refuses checks that the program ends at once, and says in one line what is wrong.
func refuses(t *testing.T, want string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitUsage, run(context.Background(), args, &stdout, &stderr), args)
	require.Contains(t, stderr.String(), want)
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"), &stderr)
	require.Empty(t, stdout.String())
}

// systems are the matrices that the methods solve.
var systems = map[string]string{"cg": "poisson3d-20", "gmres": "convection-64", "bicgstab": "convection-64"}

// For any fault and any number of ranks, the solver ends at the solution and names the rank that
// failed.
func TestRecovers(t *testing.T) {
	sizes := []int{1, 3, 8}
	if testing.Short() {
		sizes = sizes[1:2]
	}
	for method, system := range systems {
		for _, recovery := range []string{"restart", "rollback"} {
			for _, kind := range []string{"nan", "bitflip", "skew", "error", "panic"} {
				for _, ranks := range sizes {
					args := []string{"-matrix", matrices + system + ".mtx.gz", "-method", method, "-recovery", recovery}
					t.Run(fmt.Sprintf("%s/%s/%s/%d", method, recovery, kind, ranks), func(t *testing.T) { recovers(t, kind, ranks, args...) })
				}
			}
		}
	}
}

// recovers checks a run in which the rank in the middle has a fault.
func recovers(t *testing.T, kind string, ranks int, args ...string) {
	rank := ranks / 2
	doc := solved(t, append(args, "-precond", "blockjacobi", "-ranks", fmt.Sprint(ranks), "-check", "5", "-checkpoint", "10",
		"-inject", fmt.Sprintf("rank=%d,iter=7,kind=%s", rank, kind))...)
	free, faulty := doc.Runs[0], doc.Runs[1]
	assert.Empty(t, free.Events, "found faults where there were none")
	require.True(t, faulty.Converged)
	require.LessOrEqual(t, float64(faulty.TrueResidual), 1.01e-8)
	require.True(t, faulty.Injections[0].Fired)
	require.True(t, faulty.Injections[0].Detected)
	require.Len(t, faulty.Events, 1)
	e := faulty.Events[0]
	require.NotEmpty(t, e.Failures[0].Message)
	if kind != "bitflip" { // a neighbour may report a bitflip first
		require.Equal(t, rank, e.Failures[0].Rank)
	}
	require.Equal(t, kind == "panic", e.Corrupted)
	require.Equal(t, ranks-len(e.Failures), e.Told.Ranks)
}

// The same solver without recovery does not converge, and the program says so.
func TestWithoutRecovery(t *testing.T) {
	for _, kind := range []string{"nan", "bitflip", "error", "panic"} {
		code, doc := solve(t, "-matrix", matrices+"poisson3d-20.mtx.gz", "-recovery", "none", "-inject", "rank=2,iter=20,kind="+kind)
		require.Equal(t, exitFailed, code, kind)
		require.False(t, doc.Runs[1].Converged, kind)
		require.Equal(t, kind == "error" || kind == "panic", doc.Runs[1].Failure != "", kind)
	}
}

// Several faults, at one rank and at several, in sequence and at once.
func TestManyFaults(t *testing.T) {
	doc := solved(t, "-matrix", matrices+"poisson3d-20.mtx.gz", "-ranks", "6",
		"-inject", "rank=0,iter=5,kind=nan", "-inject", "rank=5,iter=5,kind=error", "-inject", "rank=2,iter=15,kind=error",
		"-inject", "rank=2,iter=25,kind=panic", "-inject", "rank=3,iter=30,kind=nan")
	for _, inj := range doc.Runs[1].Injections {
		// The recovery from rank 5's error may overwrite rank 0's NaN before it is detected.
		assert.True(t, inj.Fired && (inj.Detected || inj.Rank == 0), "%+v", inj)
	}
}

// Detection has no false alarms, on all matrices, by all methods.
func TestNoFalseAlarm(t *testing.T) {
	for _, matrix := range []string{"poisson2d-128", "poisson3d-20", "anisotropic-64", "graphene-64", "convection-64"} {
		for _, method := range []string{"cg", "gmres", "bicgstab"} {
			for _, precond := range []string{"none", "jacobi", "blockjacobi"} {
				if method == "cg" && matrix == "convection-64" || testing.Short() && precond != "none" {
					continue
				}
				t.Run(matrix+"/"+method+"/"+precond, func(t *testing.T) {
					_, doc := solve(t, "-matrix", matrices+matrix+".mtx.gz", "-method", method, "-precond", precond, "-maxiter", "400", "-inject", "none")
					require.Empty(t, doc.Runs[0].Events)
				})
			}
		}
	}
}

func TestText(t *testing.T) {
	prints(t, []string{"-matrix", matrices + "poisson3d-20.mtx.gz", "-compare"},
		"poisson3d-20: 8000 rows", "rank 3, after iteration 40", "| fault-free |", "| none", "| restart", "| rollback")
}

// prints checks that the program converges and prints these texts.
func prints(t *testing.T, args []string, wants ...string) {
	t.Helper()
	code, out := text(t, args...)
	require.Equal(t, exitConverged, code)
	for _, want := range wants {
		require.Contains(t, out, want)
	}
}

func TestBadFlags(t *testing.T) {
	packed, err := os.ReadFile(matrices + "poisson3d-20.mtx.gz")
	require.NoError(t, err)
	for _, test := range []struct{ flag, value, want string }{
		{"-method", "sor", `-method "sor", expected cg, gmres or bicgstab`},
		{"-precond", "amg", "expected none, jacobi or blockjacobi"},
		{"-recovery", "pray", "expected restart, rollback or none"},
		{"-ranks", "0", "-ranks 0, expected 1 or more"},
		{"-tol", "2", "expected a number between 0 and 1"},
		{"-inject", "rank=8,iter=1,kind=nan", "rank 8, expected 0 to 7"},
		{"-inject", "rank=1,iter=1,kind=meteor", "meteor"},
		{"-inject", "rank=1", "iter"},
		{"-matrix", "nowhere.mtx", "nowhere.mtx"},
		{"-matrix", matrices + "README.md", "README.md:1"},
		{"-matrix", file(t, "cut.mtx.gz", string(packed[:len(packed)/2])), "the compressed file ends in the middle"},
	} {
		refuses(t, test.want, test.flag, test.value)
	}
}
