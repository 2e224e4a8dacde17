package mpicxtest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func TestMain(m *testing.M) {
	// A rank that dies while it waits for something other than mpicx can't be ended,
	// nor can the mpicx.Run that it is a rank of.
	const this = "github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(this+"_test.waitForChannel"),
		goleak.IgnoreAnyFunction(this+".(*bubble).run.func1"))
}

// failing are tests that have to fail, and what they have to print.
var failing = map[string]struct {
	ranks int
	fn    func(ctx context.Context, world *mpicx.Comm) error
	want  []string
}{
	"deadlock": {3, func(ctx context.Context, world *mpicx.Comm) error {
		child := world.Dup().MustGet(ctx)
		switch world.Rank() {
		case 0:
			return mpicx.Recv(world, []int{0}, 2, 77).Wait(ctx)
		case 1:
			return mpicx.Ssend(child, []int{0}, 0, 5).Wait(ctx)
		}
		return world.Barrier().Wait(ctx)
	}, []string{"deadlock: every rank waits for another\n",
		"  rank 0: Recv from rank 2, tag 77 on world\n", "  rank 1: Ssend to rank 0, tag 5 on world.dup1\n", "  rank 2: Barrier #2 on world\n", "which is\n",
		"rank 0:", "Recv from rank 2, tag 77 on world",
		"rank 1:", "Ssend to rank 0, tag 5 on world.dup1",
		"rank 2:", "Barrier waits for rank 0 on world"}},
	"after an error": {2, func(ctx context.Context, world *mpicx.Comm) error {
		_ = world.SignalError(ctx, 1)
		return mpicx.Recv(world, []int{0}, mpicx.AnySource, mpicx.AnyTag).Wait(ctx)
	}, []string{"deadlock", "  ranks 0, 1: Recv from any rank, any tag on world, epoch 1\n", "rank 0, 1:", "Recv from any rank, any tag on world, epoch 1"}},
	"one has returned": {2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			return nil
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 0: mpicx: Barrier: rank 1 has returned"}},
	"one waits in Run": {2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			world.Barrier()
			return nil
		}
		return mpicx.Recv(world, []int{0}, 1, 3).Wait(ctx)
	}, []string{"deadlock", "rank 1: returned, waits for what it has begun: Barrier #1 on world"}},
	"dead rank": {3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			mpicxtest.Die(world)
		}
		return world.Barrier().Wait(context.Background())
	}, []string{"deadlock", "Barrier waits for rank 1 on world", "rank 1:", "has died"}},
	"error that waits": {3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			mpicxtest.Die(world)
		}
		return world.SignalError(context.Background(), 1)
	}, []string{"deadlock", "on world: error round 0 waits for rank 1"}},
	"survivors fail": {3, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 1:
			waitForChannel(func() { mpicxtest.Die(world) }, func() {})
		case 2:
			panic("boom")
		}
		time.Sleep(time.Minute)
		return errors.New("my own error")
	}, []string{"rank 0: my own error", "rank 2: its function left by a panic or runtime.Goexit"}},
	"something else": {2, func(ctx context.Context, world *mpicx.Comm) error {
		<-ctx.Done()
		return ctx.Err()
	}, []string{"deadlock", "rank 0, 1:", "waits for something other than mpicx"}},
	"returned error": {3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			return errors.New("my own error")
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 1: my own error", "ranks 0, 2: mpicx: communicator corrupted by rank 1: my own error"}},
	"futures that failed": {2, func(ctx context.Context, world *mpicx.Comm) error {
		dup := world.Dup().MustGet(ctx)
		if world.Rank() == 1 {
			mpicx.Send(world, []int{0}, 99, 5)
			mpicx.Recv(dup, make([]int, 1), 0, 5)
			mpicx.RecvValue[string](dup, 0, 6)
		} else {
			mpicx.Send(dup, make([]int, 2), 1, 5).MustWait(ctx)
			mpicx.Send(dup, make([]int, 2), 1, 6).MustWait(ctx)
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 1: nobody has waited for what ended with mpicx: Send: rank 99",
		"rank 1: nobody has waited for what ended with mpicx: Recv: message of 16 bytes from rank 0 with tag 5 is longer than the buffer of 8 bytes, on world.dup1",
		"rank 1: nobody has waited for what ended with mpicx: RecvValue: "}},
	"future after an error": {2, func(ctx context.Context, world *mpicx.Comm) error {
		_ = world.SignalError(ctx, 1)
		world.Split(-7, 0)
		return nil
	}, []string{"rank 0: nobody has waited for what ended with mpicx: Split: color -7", "rank 1: nobody has "}},
	"message": {3, func(ctx context.Context, world *mpicx.Comm) error {
		row := world.Split(world.Rank()/2, 0).MustGet(ctx)
		if world.Rank() == 1 {
			mpicx.Send(row, make([]float64, 3), 0, 7).MustWait(ctx)
			mpicx.SendValue(world, "a value", 2, 8).MustWait(ctx)
			mpicx.Send(world, []byte{1, 2}, 2, 9).MustWait(ctx)
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 0: nobody has received the message of 3 × float64 from rank 1, tag 7 on world.split1(0)",
		"rank 2: nobody has received the message of 11 bytes from rank 1, tag 8 on world", "rank 2: nobody has received the message of 2 bytes from rank 1, tag 9 on world"}},
	"message before Close": {2, func(ctx context.Context, world *mpicx.Comm) error {
		dup := world.Dup().MustGet(ctx)
		mpicx.Send(dup, []int{1}, 1-dup.Rank(), 7).MustWait(ctx)
		return dup.Close(ctx)
	}, []string{"rank 0: nobody has received the message of 1 × int from rank 1, tag 7 on world.dup1", "rank 1: nobody has "}},
	"long message": {2, func(_ context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Send(world, make([]int32, 1<<20), 1, 7)
		} else {
			// If rank 1 returned first, it would be dead for the Send with ulfm. Time is fake: it
			// passes when rank 0 has returned.
			time.Sleep(time.Second)
		}
		return nil
	}, []string{"rank 1: nobody has received the message of 1048576 × int32 from rank 0, tag 7 on world"}},
	"panic": {2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			panic("boom")
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 1 panicked: boom", "mpicxtest_test.go"}},
}

// failingPlans are plans that have to fail the test, because a statement with "must" is not carried
// out, and what has to be printed for 4 ranks that call Allreduce twice.
var failingPlans = map[string]string{
	"must kill 3 in Allreduce step 9":                               `"must kill 3 in Allreduce step 9" has not been carried out: rank 3 has begun STEPS`,
	"must kill 2 at operation 99; kill 1 at operation 99":           `"must kill 2 at operation 99" has not been carried out: rank 2 has begun STEPS`,
	"kill 1 in Allreduce step 2; must kill 1 at operation 99":       `"must kill 1 at operation 99" has not been carried out: rank 1 has begun ONCE`,
	"must kill 1 in Allreduce step 2; must kill 2 in end message 9": `"must kill 2 in end message 9" has not been carried out: rank 2`,
}

// passed is what STEPS and ONCE in failingPlans stand for.
var passed = strings.NewReplacer("STEPS", "4 operations; 2 calls of Allreduce with step 1, 2", "ONCE", "2 operations; 1 call of Allreduce with step 1, 2")

// A plan that had to do something, and did not, fails the test, and says what the rank has done.
func TestPlansThatMust(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	program := func(ctx context.Context, world *mpicx.Comm) error {
		for range 2 {
			if err := mpicx.Allreduce(world, []int{1}, []int{0}, mpicx.Sum).Wait(ctx); err != nil {
				return nil // with ulfm only a death causes one here
			}
		}
		return nil
	}
	run := map[string]func(*testing.T, string){
		"goroutines": func(t *testing.T, plan string) { mpicxtest.RunFaults(t, 4, plan, program) },
		"processes":  func(t *testing.T, plan string) { mpicxtest.RunProcessFaults(t, 4, plan, program) },
	}
	for plan, want := range failingPlans {
		for ranks, run := range run {
			t.Run(ranks+"/"+plan, func(t *testing.T) {
				if ranks == "processes" {
					needsProcesses(t)
				}
				text := fails(t, "", func(t *testing.T) { run(t, plan) })
				require.Contains(t, text, passed.Replace(want))
				require.Equal(t, 1, strings.Count(text, "has not been carried out"), text)
			})
		}
	}
}

// fails runs a test that has to fail, or one of its subtests, in another process, which calls fails
// again. It returns what the process prints.
func fails(t *testing.T, subtest string, test func(*testing.T)) string {
	t.Helper()
	const env = "MPICX_TEST_FAILING"
	if os.Getenv(env) != "" {
		test(t)
		t.SkipNow()
	}
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$" + subtest
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern, "-test.timeout=5m", "-test.v")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.NotContains(t, string(out), "test timed out")
	return string(out)
}

// seesDeath is what some of these end with where the backend sees that a process has died, or that
// a rank which others need has returned.
var seesDeath = map[string]string{
	"dead rank":        "ranks 0, 2: mpicx: communicator corrupted; dead: [1]",
	"error that waits": "ranks 0, 2: mpicx: communicator corrupted; dead: [1]",
	"one has returned": "rank 0: mpicx: communicator corrupted; rank 1 has returned",
}

// Run fails the test at once, and says why.
func TestFailures(t *testing.T) {
	for name, test := range failing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fails(t, "", func(t *testing.T) { mpicxtest.Run(t, test.ranks, test.fn) })
			if dead, ok := seesDeath[name]; ok && mpicx.Backend == "ulfm" {
				test.want = []string{dead}
			}
			for _, want := range test.want {
				require.Contains(t, text, want)
			}
			all := strings.Join(test.want, "\n")
			require.Equal(t, strings.Contains(all, "deadlock"), strings.Contains(text, "deadlock"), text)
			require.Equal(t, strings.Count(all, ": nobody has "), strings.Count(text, ": nobody has "), text)
			require.NotContains(t, text, "\npanic: ")
			require.Equal(t, 2, strings.Count(text, "--- FAIL"), text) // the subtest, and TestFailures itself
		})
	}
}

// Long timers take no time, and are no deadlock.
func TestTimers(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		for i := range 10 {
			if world.Rank() == i%3 {
				time.Sleep(20 * 24 * time.Hour)
			}
			world.Barrier().MustWait(ctx)
		}
		return nil
	})
}

// What is no *testing.T has no bubble, but runs.
func TestOtherTB(t *testing.T) {
	called := make([]bool, 3)
	mpicxtest.Run(struct{ testing.TB }{t}, 3, func(ctx context.Context, world *mpicx.Comm) error {
		called[world.Rank()] = true
		return world.Barrier().Wait(ctx)
	})
	require.Equal(t, []bool{true, true, true}, called)
}

// H1: the death of a rank disturbs no rank that does not need it, and nobody else is told.
func TestDie(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 0:
			return mpicx.Send(world, []int{1}, 2, 1).Wait(ctx)
		case 1:
			mpicxtest.Die(world)
		}
		return errors.Join(mpicx.Recv(world, []int{0}, 0, 1).Wait(ctx), world.Err())
	})
}
