package mpicxtest

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// RunFaults is [Run] with ranks that die, as by [Die], at the moments that plan
// names, and returns those that did, in ascending order. They do not fail t, the
// errors of the survivors do. A plan that can't be read, or does not fit the
// ranks, fails t at once.
//
// A plan is statements, separated by semicolons or newlines; ranks are the
// world's, and the numbers after them those of spares (mpicx.WithSpares). Other numbers count from 1:
//
//	kill 3 at operation 17            instead of its 17th send, receive or probe, those
//	                                  of collective operations among them
//	kill 3 in Allreduce step 2        before it sends or receives in the second round of the algorithm,
//	kill 3 in Allreduce step 2 call 4 and that of its fourth Allreduce
//	kill 2 in shrink message 1        before its first message of the error channel for Shrink;
//	                                  so for replace, agree, dup, split, diagnose, for
//	                                  revoke (which tells of errors, too), resolve
//	                                  (which agrees on what they mean) and end (of programs)
//	kill 2 random seed 7 of 500       at one of its first 500 operations
//	kill any 2 random seed 7 of 500   so for two ranks, drawn with the same seed
//
// Operations and messages count over all of a rank's communicators and its whole
// run; calls of a collective likewise, by its name. A moment that never comes kills
// nobody: look at the ranks that are returned. To try every moment there is, count up until nobody dies:
//
//	for k := 1; len(mpicxtest.RunFaults(t, 4, fmt.Sprintf("kill 3 at operation %d", k), program)) > 0; k++ {
//	}
//
// The black channel sees no process die, and its survivors would hang: there
// RunFaults skips t. It does so in a job of mpirun's, too, where no process could say
// which others have died by plan.
func RunFaults(t testing.TB, ranks int, plan string, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) (killed []int) {
	t.Helper()
	p, err := fault.Parse(plan)
	if err == nil {
		err = p.OfProcesses()
	}
	if err == nil {
		all := ranks
		for _, o := range opts {
			all += hook.Spares(o)
		}
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
		if t.Failed() { // which may have ended the test already
			t.Logf("%d ranks, plan %q, killed %v", ranks, p, p.Killed())
		}
	}()
	run(t, ranks, fn, append(opts, mpicx.WithRanks(ranks), hook.Transport(p.Wrap).(mpicx.Option)))
	return p.Killed()
}
