package mpicxtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
)

// RunFaults is Run with ranks that die, as by Die, at the moments that plan names. It returns
// the ranks that have died, in ascending order. A death does not fail t; an error of a survivor
// does. A plan that cannot be read, or that does not fit the ranks, fails t at once.
//
// A plan consists of statements, separated by semicolons or newlines. Ranks are those of the world,
// and the numbers after them are spares (mpicx.WithSpares), or fresh ranks (mpicx.WithRespawn) in
// the order in which they are started. Other numbers count from 1:
//
//	kill 3 at operation 17            instead of its 17th send, receive or probe, counting those
//	                                  of collective operations
//	kill 3 in Allreduce step 2        before it sends or receives in the second step of the algorithm
//	kill 3 in Allreduce step 2 call 4 the same, in its fourth Allreduce
//	kill 2 in shrink message 1        before its first message of the error channel for Shrink;
//	                                  also replace, agree, dup, split, diagnose, revoke (also
//	                                  for notices of errors), resolve (to agree on what an error
//	                                  means) and end (of programs)
//	kill 2 random seed 7 of 500       at one of its first 500 operations
//	kill any 2 random seed 7 of 500   the same for two ranks, drawn with the same seed
//
// A collective has the name of its function: AllreduceValue is not Allreduce. Operations and
// messages count over all communicators of a rank and its whole run, and calls of a collective by
// name. Which steps a rank takes part in depends on the algorithm, and so on the sizes, the number
// of ranks and the transport: an Allreduce of one number has steps 1 and 2 among 4 goroutine ranks,
// and steps 2 and 3 among 4 processes. The numbers of operations have no gaps. Short operations of
// goroutine ranks need no messages: in step 1 the rank has not come to the call, in step 2 it has.
//
// A moment that never comes kills nobody. A statement that begins with "must" fails t then, and
// the failure says which moments its rank has passed:
//
//	must kill 3 in Allreduce step 2
//
// [EveryDeath] tries every operation. To try every message, leave "must" out, and count up until
// nobody dies.
//
// Without -tags ulfm a plan in which ranks may die fails t, because the black channel does not see
// them die: a test that is to be skipped there calls [NeedsULFM] first. A plan without deaths, such
// as "", runs with either backend. In a job of mpirun RunFaults skips t if ranks may die, because
// no process could say which others have died by plan.
func RunFaults(t testing.TB, ranks int, plan string, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) (killed []int) {
	t.Helper()
	all := ranks
	for _, o := range opts {
		all += hook.SettingsOf(o).Spares
	}
	if respawns(opts) {
		all += hook.Fresh
	}
	p := planOf(t, plan, all)
	if err := p.OfProcesses(); err != nil {
		t.Fatal(err)
	}
	if p.Deadly() {
		goroutinesDie(t, fmt.Sprintf("plan %q", p))
	}
	runPlan(t, ranks, all, p, fn, opts)
	return p.Killed()
}

// planOf reads a plan for the given number of ranks.
func planOf(t testing.TB, plan string, ranks int) *fault.Plan {
	t.Helper()
	p, err := fault.Parse(plan)
	if err == nil {
		err = p.Fits(ranks)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// EveryDeath runs fn once for each operation of each rank, and kills the rank there: whoever dies,
// and whenever, the survivors have to return nil. Each of these runs is a subtest with the name of
// its plan, "kill 3 at operation 17". [RunFaults] with that plan replays it, and so does
//
//	go test -tags ulfm -run '^TestOfYours$/^kill_3_at_operation_17$'
//
// An operation is a send, a receive or a probe that the rank begins on any of its communicators,
// those of its collective operations included. A first run, in which nobody dies, counts them, from
// 1 to the end of fn; if it fails, no rank is killed. The counts are the same in each run if a
// rank's operations do not depend on which of its goroutines is faster. Function fn is called anew
// in each run, and must not keep anything from an earlier one. Options are those of mpicx.Run; with
// WithSpares, spares are not killed.
//
// Without -tags ulfm EveryDeath fails t, as RunFaults does, and it skips t in a job of mpirun.
func EveryDeath(t *testing.T, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) {
	t.Helper()
	goroutinesDie(t, "EveryDeath")
	undisturbed := &fault.Plan{Counting: true}
	runPlan(t, ranks, ranks, undisturbed, fn, opts)
	if t.Failed() {
		return
	}
	deaths := 0
	for rank := range ranks {
		for k := 1; k <= undisturbed.Operations(rank); k++ {
			deaths++
			plan := fmt.Sprintf("kill %d at operation %d", rank, k)
			t.Run(plan, func(t *testing.T) { RunFaults(t, ranks, plan, fn, opts...) })
		}
	}
	if deaths == 0 {
		t.Errorf("%d ranks begin no operation, expected one at which to kill a rank", ranks)
	}
}

// NeedsULFM skips t unless the error backend sees deaths, which it does with -tags ulfm. Call it in
// a test in which ranks die, if the test is to be skipped with the other backend; otherwise it
// fails there.
func NeedsULFM(t testing.TB) {
	t.Helper()
	if mpicx.Backend != "ulfm" {
		t.Skipf("backend %s sees no process die, expected -tags ulfm", mpicx.Backend)
	}
}

// deathsAreSeen fails t if the backend sees no deaths.
func deathsAreSeen(t testing.TB, what string) {
	t.Helper()
	if mpicx.Backend != "ulfm" {
		t.Fatalf("%s: backend %s sees no process die, expected -tags ulfm, or a call of mpicxtest.NeedsULFM, which skips the test", what, mpicx.Backend)
	}
}

// goroutinesDie fails t if the backend sees no deaths, and skips it in a job.
func goroutinesDie(t testing.TB, what string) {
	t.Helper()
	deathsAreSeen(t, what)
	if machine.Processes() > 0 {
		t.Skip("deaths are for goroutine ranks, and mpirun has started processes")
	}
}

// runPlan runs fn with a plan for all ranks, including spares and fresh ranks.
func runPlan(t testing.TB, ranks, all int, p *fault.Plan, fn func(context.Context, *mpicx.Comm) error, opts []mpicx.Option) {
	t.Helper()
	defer func() {
		t.Helper()
		reportMissed(t, p, all, p.Counts)
		if t.Failed() { // a failure may have ended the test already
			t.Logf("%d ranks, plan %q, killed %v", ranks, p, p.Killed())
		}
	}()
	RunWith(t, ranks, fn, append(slices.Clone(opts), hook.Transport[mpicx.Option](p.Wrap))...)
}

// reportMissed fails t for each statement that the plan had to carry out, in a job of that many
// ranks, and has not. Counts returns the numbers of operations that a rank has begun.
func reportMissed(t testing.TB, p *fault.Plan, ranks int, counts func(rank int) string) {
	t.Helper()
	if t.Skipped() {
		return
	}
	for _, m := range p.Missed(ranks) {
		begun := "ended without a word of what it had begun"
		if text := counts(m.Rank); text != "" {
			begun = "has begun " + text
		}
		t.Errorf("fault plan: %q has not been carried out: rank %d %s", m.Statement, m.Rank, begun)
	}
}
