package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// survive runs a program with the plan. It checks that all survivors end, and that they were told
// the same. It returns the ranks that were killed.
func survive(t *testing.T, n int, plan string, uniform bool, run program) []int {
	t.Helper()
	outcomes := make([]outcome, n)
	killed := mpicxtest.RunFaults(t, n, plan, func(ctx context.Context, world *mpicx.Comm) error {
		o := &outcomes[world.Rank()]
		o.told = make(map[string]string)
		return run(ctx, world, o)
	})
	comm, all, ok := "", make(map[string]string), true
	for r, o := range outcomes {
		if slices.Contains(killed, r) {
			continue
		}
		for of, told := range o.told {
			ok = ok && (all[of] == "" || all[of] == told)
			all[of] = told
		}
		ok = ok && o.comm != "" && (!uniform || comm == "" || comm == o.comm)
		comm = o.comm
	}
	require.True(t, ok, "%d ranks, %s: %+v", n, plan, outcomes)
	return killed
}

// Whichever ranks die, and whenever, the survivors end, and alike.
func TestExhaustive(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, do := range bodies {
		exhaustAll(t, "propagating/"+name, 3, 5, false, propagating(do))
		if name != "signalling" { // an Agree under way ends with the verdict of a round, elsewhere with its decision
			exhaustAll(t, "returning/"+name, 3, 5, true, returning(do))
		}
	}
}

// exhaustAll is exhaust for least to most ranks, and each of them.
func exhaustAll(t *testing.T, name string, least, most int, uniform bool, p program) {
	for n := least; n <= most; n++ {
		for r := range n {
			t.Run(fmt.Sprintf("%s/%d/%d", name, n, r), func(t *testing.T) {
				t.Parallel()
				exhaust(t, n, r, uniform, p)
			})
		}
	}
}

// exhaust has rank r die at every moment there is and, with few ranks, any other rank after it. If
// the program is uniform, all survivors end on the same communicator.
func exhaust(t *testing.T, n, r int, uniform bool, p program) {
	// try says how many die by a plan.
	try := func(format string, args ...any) int {
		return len(survive(t, n, fmt.Sprintf(format, args...), uniform, p))
	}
	two := n < 4 || n == 4 && !buildtags.Race
	for k := 1; try("kill %d at operation %d", r, k) > 0; k++ {
		for other := range n {
			if other == r || !two {
				continue
			}
			for _, protocol := range fault.Protocols {
				for m := 1; try("kill %d at operation %d; kill %d in %s message %d", r, k, other, protocol, m) == 2; m++ {
				}
			}
			for m := 1; n == 3 && !buildtags.Race && try("kill %d at operation %d; kill %d at operation %d", r, k, other, m) == 2; m++ {
			}
		}
	}
	for _, c := range []string{"Barrier", "Allreduce"} {
		for k := range 6 { // there may be steps in which a rank has nothing to do
			try("kill %d in %s step %d", r, c, k+1)
		}
	}
	for _, protocol := range fault.Protocols {
		for k := 1; try("kill %d in %s message %d", r, protocol, k) > 0; k++ {
		}
	}
}

// A rank ends when the operation of another of its goroutines kills it, whatever it does then.
func TestKilledAnywhere(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, fn := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"blocked in Recv": func(_ context.Context, world *mpicx.Comm) error {
			return mpicx.Recv(world, []int{0}, 1, 2).Wait(context.Background())
		},
		"blocked in Agree":     func(ctx context.Context, world *mpicx.Comm) error { return world.Agree(1).Wait(ctx) },
		"blocked in Shrink":    func(ctx context.Context, world *mpicx.Comm) error { return world.Shrink().Wait(ctx) },
		"blocked in Dup":       func(ctx context.Context, world *mpicx.Comm) error { return world.Dup().Wait(ctx) },
		"blocked for a signal": func(ctx context.Context, world *mpicx.Comm) error { return world.SignalError(ctx, 1) },
		"computing": func(_ context.Context, world *mpicx.Comm) error {
			time.Sleep(time.Minute)
			mpicx.Send(world, []int{1}, 1, 1)
			return nil
		},
		"asking": func(_ context.Context, world *mpicx.Comm) error {
			time.Sleep(time.Minute)
			return world.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := 1
			if name == "blocked in Recv" { // which is the first
				at = 2
			}
			plan := fmt.Sprintf("must kill 0 at operation %d", at)
			mpicxtest.RunFaults(t, 2, plan, func(ctx context.Context, world *mpicx.Comm) error {
				world.SetErrhandler(mpicx.ErrorsReturn)
				if world.Rank() == 0 {
					time.AfterFunc(time.Second, func() { _ = mpicx.Probe[int](world, 1, 9) })
					_ = fn(ctx, world)
					t.Error("rank 0 lives")
				}
				time.Sleep(time.Hour)
				err := mpicx.Recv(world, []int{0}, 0, 1).Wait(ctx)
				require.True(t, expected(err), "%v", err)
				return nil
			})
		})
	}
}

// A plan that is none fails the test, with every backend.
func TestBadPlans(t *testing.T) {
	for plan, want := range map[string]string{
		"kill 1 at dawn":        `line 1, column 11: "dawn", expected operation`,
		"kill 2 at operation 1": `"kill 2 at operation 1": rank 2, expected 0 to 1`,
	} {
		require.Contains(t, fatal(t, func(tb testing.TB) {
			mpicxtest.RunFaults(tb, 2, plan, func(context.Context, *mpicx.Comm) error { return nil })
		}), want)
	}
}

// fatal returns the text with which fn ends its test.
func fatal(t *testing.T, fn func(testing.TB)) string {
	tb := &recorder{TB: t}
	done := make(chan bool)
	go func() {
		defer close(done)
		fn(tb)
	}()
	<-done
	return tb.fatal
}

// Without deaths a plan runs with each backend. A plan with deaths tests nothing with a backend
// that does not see them, so there the test fails, or says by its name that it is skipped.
func TestDeathsThatNobodySees(t *testing.T) {
	ran := make(chan int, 2)
	require.Empty(t, mpicxtest.RunFaults(t, 2, "", func(_ context.Context, world *mpicx.Comm) error {
		ran <- world.Rank()
		return nil
	}))
	require.Len(t, ran, 2)
	skipped := false
	t.Run("by name", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		mpicxtest.NeedsULFM(t)
	})
	require.Equal(t, mpicx.Backend != "ulfm", skipped)
	for _, plan := range []string{"kill 1 at operation 1", "must kill 1 at operation 1", "kill any 1 random seed 1 of 1"} {
		if skipped {
			require.Equal(t, fmt.Sprintf("plan %q: backend %s sees no process die, expected -tags ulfm, or a call of mpicxtest.NeedsULFM, which skips the test", plan, mpicx.Backend),
				fatal(t, func(tb testing.TB) { mpicxtest.RunFaults(tb, 2, plan, nil) }))
		}
	}
}

// Each rank dies once at each of its operations, as RunFaults counts them.
func TestEveryDeath(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			const n = 3
			var begun, ended atomic.Int32
			run := func(ctx context.Context, world *mpicx.Comm) error {
				begun.Add(1)
				o := outcome{told: make(map[string]string)}
				err := propagating(body)(ctx, world, &o)
				ended.Add(1)
				return err
			}
			operations := 0
			for rank := range n {
				for k := 1; len(mpicxtest.RunFaults(t, n, fmt.Sprintf("kill %d at operation %d", rank, k), run)) > 0; k++ {
					operations++
				}
			}
			begun.Store(0)
			ended.Store(0)
			mpicxtest.EveryDeath(t, n, run)
			require.Equal(t, n+n*operations, int(begun.Load()))
			require.Equal(t, n+(n-1)*operations, int(ended.Load()))
		})
	}
}

// A death that a program does not survive fails a subtest of EveryDeath, which replays it.
func TestFailingEveryDeath(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	missed := func(ctx context.Context, world *mpicx.Comm) error {
		for range 2 {
			err := world.Barrier().Wait(ctx)
			if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); err != nil && (!ok || c.Dead[0] == 1) {
				return err
			}
		}
		return nil
	}
	for _, c := range []struct {
		name           string
		ranks          int
		program        func(context.Context, *mpicx.Comm) error
		subtest        string
		want, unwanted string
	}{
		{"one rank is missed", 3, missed, "", `plan "kill 1 at operation 1", killed [1]`, "kill 0"},
		{"it is replayed", 3, missed, "/^kill_1_at_operation_2$", `plan "kill 1 at operation 2", killed [1]`, "operation 1"},
		{"fails anyway", 2, func(context.Context, *mpicx.Comm) error { return errors.New("a bug") }, "", `2 ranks, plan "", killed []`, "kill "},
		{"alone", 1, func(context.Context, *mpicx.Comm) error { return nil }, "", "1 ranks begin no operation, expected one at which to kill a rank", "kill 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fails(t, c.subtest, func(t *testing.T) { mpicxtest.EveryDeath(t, c.ranks, c.program) })
			require.Contains(t, text, c.want)
			require.NotContains(t, text, c.unwanted)
		})
	}
}

type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatal(args ...any) {
	r.fatal = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
