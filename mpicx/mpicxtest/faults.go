package mpicxtest

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// RunFaults is Run with ranks that die, as by Die, at the moments that plan names. It returns
// the ranks that have died, in ascending order. A death does not fail t; an error of a survivor
// does. A plan that cannot be read, or that does not fit the ranks, fails t at once.
//
// A plan consists of statements, separated by semicolons or newlines. Ranks are those of the
// world, and the numbers after them are spares (mpicx.WithSpares), or fresh ranks (mpicx.WithRespawn) in
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
// messages count over all communicators of a rank and its whole run, and calls of a collective
// by name. Which steps a rank takes part in depends on the algorithm, and so on the sizes, the number
// of ranks and the transport: an Allreduce of one number has steps 1 and 2 among 4 goroutine ranks,
// and steps 2 and 3 among 4 processes. The numbers of operations have no gaps.
//
// A moment that never comes kills nobody. A statement that begins with "must" fails t then, and
// the failure says which moments its rank has passed:
//
//	must kill 3 in Allreduce step 2
//
// To try every moment, leave it out, and count up until nobody dies:
//
//	for k := 1; len(mpicxtest.RunFaults(t, 4, fmt.Sprintf("kill 3 at operation %d", k), program)) > 0; k++ {
//	}
//
// The black channel does not see processes die, and the survivors would hang: with it RunFaults
// skips t. It also skips t in a job of mpirun, where no process could say which others have
// died by plan.
func RunFaults(t testing.TB, ranks int, plan string, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) (killed []int) {
	t.Helper()
	p, err := fault.Parse(plan)
	if err == nil {
		err = p.OfProcesses()
	}
	all := ranks
	for _, o := range opts {
		all += hook.Spares(o)
	}
	if respawns(opts) {
		all += hook.Fresh
	}
	if err == nil {
		err = p.Fits(all)
	}
	if err != nil {
		t.Fatal(err)
	}
	if mpicx.Backend != "ulfm" {
		t.Skipf("backend %s sees no process die, expected ulfm", mpicx.Backend)
	}
	if hook.Processes() > 0 {
		t.Skip("plans are for goroutine ranks, and mpirun has started processes")
	}
	defer func() {
		t.Helper()
		reportMissed(t, p, all, p.Counts)
		if t.Failed() { // a failure may have ended the test already
			t.Logf("%d ranks, plan %q, killed %v", ranks, p, p.Killed())
		}
	}()
	run(t, ranks, fn, append(opts, mpicx.WithRanks(ranks), hook.Transport(p.Wrap).(mpicx.Option)))
	return p.Killed()
}

// reportMissed fails t for what the plan had to do in a job of that many ranks and has not done.
// Counts says what a rank has begun.
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
