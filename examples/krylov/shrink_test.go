package main

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/krylov/report"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// deaths returns flags that make these ranks die.
func deaths(at string, ranks ...int) []string {
	var args []string
	for _, r := range ranks {
		args = append(args, "-inject", fmt.Sprintf("rank=%d,%s,kind=die", r, at))
	}
	return args
}

// The survivors of any deaths get the solution of the undisturbed run.
func TestShrink(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, test := range []struct {
		name  string
		args  []string
		ranks int // that survive
	}{
		{"in the middle", deaths("iter=40", 3), 7},
		{"first", deaths("iter=40", 0), 7},
		{"last", deaths("iter=40", 7), 7},
		{"two neighbours at once", deaths("iter=40", 3, 4), 6},
		{"the first two at once", deaths("iter=40", 0, 1), 6},
		{"at both ends at once", deaths("iter=40", 0, 7), 6},
		{"after the first iteration", deaths("iter=1", 5), 7},
		{"one after the other", slices.Concat(deaths("iter=10", 2), deaths("iter=20", 0), deaths("iter=30", 6)), 5},
		{"during a recovery", append(deaths("iter=10", 2), deaths("recovery=1", 3)...), 6},
		{"during recoveries of recoveries", slices.Concat(deaths("iter=10", 2), deaths("recovery=1", 0, 1), deaths("recovery=2", 7), deaths("recovery=3", 3)), 3},
		{"all but one", slices.Concat(deaths("iter=10", 0, 1, 2), deaths("iter=20", 5, 7), deaths("recovery=2", 3, 6)), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc := solved(t, append(test.args, "-recovery", "shrink", "-matrix", matrices+"poisson3d-20.mtx.gz")...)
			requireSurvived(t, doc, test.ranks)
		})
	}
}

// A death while the system is read, or while the store is opened, is like any other: the others
// start again.
func TestShrinkAtTheStart(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, victim := range []int{0, 2} {
		for at := 1; at <= 60; at += 4 {
			cfg, err := parseFlags([]string{"-ranks", "3", "-inject", "none", "-recovery", "shrink", "-matrix", matrices + "poisson3d-20.mtx.gz"})
			require.NoError(t, err)
			tr := &trial{cfg: cfg, out: report.New(&cfg.Settings, false, io.Discard), ranks: make([]*rank, 3), deaths: make(map[int]time.Time)}
			killed := mpicxtest.RunFaults(t, 3, fmt.Sprintf("kill %d at operation %d", victim, at), tr.rankMain)
			require.Equal(t, []int{victim}, killed)
			require.True(t, tr.ranks[1].finished)
			if t.Failed() {
				t.Fatalf("death of %d at %d", victim, at)
			}
		}
	}
}

// requireSurvived checks that the deaths of the second run were noticed, each once, and that it got
// the first run's solution.
func requireSurvived(t *testing.T, doc document, ranks int) {
	t.Helper()
	free, faulty := doc.Runs[0], doc.Runs[1]
	require.Empty(t, free.Events)
	require.True(t, faulty.Converged)
	require.LessOrEqual(t, float64(faulty.TrueResidual), 1.01e-8)
	require.LessOrEqual(t, *faulty.Error, 20**free.Error)
	require.Empty(t, faulty.Failure)
	require.Len(t, faulty.Residuals, faulty.Iterations) // the history outlives the leaders

	requireNoticed(t, faulty)
	require.NotEmpty(t, faulty.Events)
	left := faulty.Events[0].Takeover.Rows
	for _, e := range faulty.Events {
		assert.Empty(t, e.Failures, "the dead told something")
		require.NotNil(t, e.Takeover)
		assert.Equal(t, e.Takeover.Ranks, e.Told.Ranks)
		assert.Positive(t, e.Takeover.Lost)
		assert.True(t, e.Takeover.Interpolated || e.Takeover.After == e.Takeover.Restored)
		assert.Less(t, e.Takeover.After, e.Takeover.Zeroed)
	}
	last := faulty.Events[len(faulty.Events)-1].Takeover
	require.Equal(t, ranks, last.Ranks)
	require.Equal(t, left, last.Rows)
}

// requireNoticed checks that each injected death was noticed, once.
func requireNoticed(t *testing.T, o report.Outcome) {
	t.Helper()
	var died, noticed []int
	for _, inj := range o.Injections {
		assert.True(t, inj.Fired && inj.Detected, "%+v", inj)
		died = append(died, inj.Rank)
	}
	for _, e := range o.Events {
		noticed = append(noticed, e.Dead...)
	}
	require.ElementsMatch(t, died, noticed)
}

// All methods and preconditioners survive, and any rank may die.
func TestShrinkMethods(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for method, system := range systems {
		for i := range 2 * 3 {
			precond, rank := []string{"jacobi", "blockjacobi"}[i%2], i/2
			if testing.Short() && rank != 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%d", method, precond, rank), func(t *testing.T) {
				doc := solved(t, append(deaths("iter=12", rank), "-recovery", "shrink", "-ranks", "3", "-checkpoint", "5",
					"-method", method, "-precond", precond, "-matrix", matrices+system+".mtx.gz")...)
				requireSurvived(t, doc, 2)
			})
		}
	}
}

// The interpolated iterate is about as good as the one before the death: the survivors do not start
// from 0.
func TestInterpolationSaves(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	doc := solved(t, append(deaths("iter=200", 3), "-recovery", "shrink")...)
	requireSurvived(t, doc, 7)
	e := doc.Runs[1].Events[0]
	require.LessOrEqual(t, e.Takeover.After, 3*e.Takeover.Before)
	require.Greater(t, e.Takeover.Zeroed, 100*e.Takeover.Before)
	require.Equal(t, 1, e.Takeover.Shrunk)
	require.Less(t, doc.Runs[1].Iterations, doc.Runs[0].Iterations+100)
}

// More ranks than rows: some ranks have nothing to lose.
func TestShrinkWithoutRows(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	doc := solved(t, append(deaths("iter=2", 0, 2, 9), "-recovery", "shrink", "-ranks", "10", "-precond", "jacobi", "-matrix", matrices+"hilbert-6.mtx")...)
	require.True(t, doc.Runs[1].Converged)
}

// Deaths together with other faults, before the recovery and during it.
func TestShrinkAmongOtherFaults(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	doc := solved(t, "-matrix", matrices+"poisson3d-20.mtx.gz", "-recovery", "shrink", "-check", "5",
		"-inject", "rank=0,iter=5,kind=nan", "-inject", "rank=5,iter=10,kind=die", "-inject", "rank=2,recovery=2,kind=error",
		"-inject", "rank=6,iter=15,kind=panic", "-inject", "rank=3,iter=20,kind=bitflip", "-inject", "rank=7,iter=25,kind=die")
	o := doc.Runs[1]
	require.True(t, o.Converged)
	require.Empty(t, o.Failure)
	require.Nil(t, o.Events[0].Takeover, "nobody has died")
	var dead, failed []int
	ranks := 8
	for _, e := range o.Events {
		dead = append(dead, e.Dead...)
		for _, f := range e.Failures {
			failed = append(failed, f.Rank)
		}
		if e.Takeover != nil {
			ranks = e.Takeover.Ranks
		}
	}
	require.ElementsMatch(t, []int{5, 7}, dead)
	for _, r := range []int{0, 2, 6} {
		require.Contains(t, failed, r)
	}
	require.Equal(t, 5, ranks)
}

// Spares take the places of the dead, and the iteration continues from a checkpoint as if nothing
// had happened.
func TestReplace(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, args := range map[string][]string{
		"first":               deaths("iter=40", 0),
		"one after the other": slices.Concat(deaths("iter=20", 2), deaths("iter=40", 2), deaths("iter=60", 0)),
		"in a recovery":       slices.Concat(deaths("iter=20", 2), deaths("recovery=1", 5)),
		"neighbours at once":  deaths("iter=40", 3, 4), // possibly from the beginning
	} {
		for _, method := range []string{"cg", "gmres"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				doc := solved(t, append(args, "-recovery", "replace", "-method", method, "-checkpoint", "5", "-matrix", matrices+"poisson3d-20.mtx.gz")...)
				requireNoticed(t, doc.Runs[1])
				for _, e := range doc.Runs[1].Events {
					require.NotEmpty(t, e.Recovery)
					require.Nil(t, e.Takeover)
				}
				if method == "cg" { // GMRES begins a new cycle
					require.Equal(t, doc.Runs[0].TrueResidual, doc.Runs[1].TrueResidual)
				}
			})
		}
	}
	doc := solved(t, "-recovery", "replace", "-inject", "rank=1,iter=20,kind=panic", "-inject", "rank=4,iter=30,kind=bitflip", "-matrix", matrices+"poisson3d-20.mtx.gz")
	require.Len(t, doc.Runs[1].Events, 2)
}

// The other recoveries start the job again; no death ends it.
func TestDeathWithoutShrink(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	args := append(deaths("iter=20", 3), "-matrix", matrices+"poisson3d-20.mtx.gz", "-checkpoint", "10", "-recovery")
	for _, recovery := range []string{"restart", "rollback"} {
		doc := solved(t, append(args, recovery)...)
		require.Len(t, doc.Runs[1].Events, 1)
		require.Equal(t, []int{3}, doc.Runs[1].Events[0].Dead)
		require.True(t, doc.Runs[1].Injections[0].Detected)
	}
	code, doc := solve(t, append(args, "none")...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, doc.Runs[1].Failure, "dead: [3]")
}

// No rank survives.
func TestAllDie(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	code, doc := solve(t, append(deaths("iter=5", 0, 1, 2), "-ranks", "3", "-recovery", "shrink", "-matrix", matrices+"poisson3d-20.mtx.gz")...)
	require.Equal(t, exitFailed, code)
	require.Equal(t, errAllDead.Error(), doc.Runs[1].Failure)
}

func TestShrinkText(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	prints(t, append(deaths("iter=40", 3), "-recovery", "shrink"),
		"fault       rank 3, after iteration 40: its process died",
		"died        rank 3, with 40 iterations done",
		"told        the other 7 ranks",
		"shrunk      the communicator, to 7 ranks",
		"2041 rows of 16384 were lost",
		"interpolated from the survivors'",
		"recovery    the survivors began a new Krylov space from the iterate of iteration 40",
		"converged   ")
}

func TestNeedsULFM(t *testing.T) {
	if hasULFM {
		t.Skip("this build has it")
	}
	refuses(t, `-inject "rank=3,iter=40,kind=die": kind "die", expected a build with -tags ulfm`, deaths("iter=40", 3)...)
	refuses(t, `-recovery "shrink", expected a build with -tags ulfm`, "-recovery", "shrink")
}

// A rank that dies when its peers already recover from another death is in no cause.
func TestEventOfUnreportedDeath(t *testing.T) {
	r := &rank{trial: &trial{}, members: []member{{0, 0}, {1, 1}, {2, 1}, {3, 1}}}
	r.Members = []member{{0, 0}, {1, 0}, {2, 0}, {3, 0}}
	e := r.event(&recovery.Attempt{Causes: []error{&mpicx.CommCorruptedError{Dead: []int{1}, Failures: []mpicx.Failure{{Rank: 3}}}}})
	require.Equal(t, []int{1, 2}, e.Dead)
}
