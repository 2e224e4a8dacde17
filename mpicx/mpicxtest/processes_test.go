package mpicxtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Each rank is a process. Its logs, its output and the values of Hand come back to the test.
func TestRunProcesses(t *testing.T) {
	before := 1
	all := mpicxtest.RunProcesses(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		before++ // in this process alone
		sum := []int{0}
		err := mpicx.Allreduce(world, []int{world.Rank()}, sum, mpicx.Sum).Wait(ctx)
		mpicxtest.Hand(sum[0])
		mpicxtest.Hand(os.Getpid())
		t.Logf("%s, rank %d", world.Transport(), world.Rank())
		fmt.Println("written by", world.Rank())
		return err
	})
	require.Equal(t, 1, before)
	pids := map[int]bool{os.Getpid(): true}
	for r, p := range all {
		values := mpicxtest.ValuesOf[int](t, p)
		require.Equal(t, 3, values[0])
		pids[values[1]] = true
		require.Contains(t, p.Log, fmt.Sprint("node, rank ", r))
		require.Contains(t, p.Log, fmt.Sprint("written by ", r))
		require.NotContains(t, p.Log, "=== RUN")
		require.Zero(t, p.Status)
	}
	require.Len(t, pids, 4)
}

// Several calls in a test, and in its subtests, each have processes of their own, whatever
// goroutine ranks were before; in those, calls before them return what they have returned.
func TestRunProcessesAgain(t *testing.T) {
	pid := func(t *testing.T, n int, seen ...int) int {
		p := mpicxtest.RunProcesses(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			mpicxtest.Hand(seen)
			mpicxtest.Hand([]int{os.Getpid()})
			return world.Barrier().Wait(ctx)
		})
		values := mpicxtest.ValuesOf[[]int](t, p[0])
		require.ElementsMatch(t, seen, values[0])
		return values[1][0]
	}
	barrier := func(ctx context.Context, world *mpicx.Comm) error { return world.Barrier().Wait(ctx) }
	mpicxtest.Run(t, 3, barrier)
	first := pid(t, 1)
	mpicxtest.Run(t, 3, barrier)
	second := pid(t, 2, first)
	for n := 1; n <= 2; n++ {
		t.Run(fmt.Sprintf("n=%d, the (same)", n), func(t *testing.T) {
			t.Parallel()
			third := pid(t, n, first, second)
			require.NotContains(t, []int{first, second}, third)
		})
	}
}

// What a process of a job starts is no process of it.
func TestWhatProcessesStart(t *testing.T) {
	mpicxtest.RunProcesses(t, 1, func(context.Context, *mpicx.Comm) error {
		c := exec.Command(os.Args[0], "-test.run=^TestOtherTB$", "-test.v")
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "MPICXRUN_") { // as a program does
				c.Env = append(c.Env, v)
			}
		}
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestOtherTB") {
			return fmt.Errorf("%s%w", out, err)
		}
		return nil
	})
}

// processesThatFail are tests that have to fail, and what they have to print.
var processesThatFail = map[string]struct {
	fn   func(t *testing.T, ctx context.Context, world *mpicx.Comm) error
	want []string
}{
	"error": {func(_ *testing.T, ctx context.Context, world *mpicx.Comm) error {
		fmt.Println("said by", world.Rank())
		if world.Rank() == 1 {
			return errors.New("my own error")
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 1: my own error", "said by 0", "said by 1"}},
	"exit": {func(_ *testing.T, ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			os.Exit(3)
		}
		return nil
	}, []string{"rank 1 has ended: exit status 3"}},
	"Errorf": {func(t *testing.T, ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			t.Errorf("an assertion")
		}
		return nil
	}, []string{"rank 1 has failed", "an assertion"}},
	"FailNow": {func(t *testing.T, ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			t.Fatalf("an assertion")
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 1 has failed", "an assertion"}},
	"panic": {func(t *testing.T, ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			panic("boom")
		}
		return world.Barrier().Wait(ctx)
	}, []string{"rank 1 panicked: boom"}},
}

// needsProcesses skips a test of what RunProcesses says where that skips all.
func needsProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no ranks are processes on Windows")
	}
}

// RunProcesses fails the test, and says why.
func TestProcessFailures(t *testing.T) {
	needsProcesses(t)
	for name, test := range processesThatFail {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fails(t, "", func(t *testing.T) {
				mpicxtest.RunProcesses(t, 2, func(ctx context.Context, world *mpicx.Comm) error { return test.fn(t, ctx, world) })
			})
			for _, want := range test.want {
				require.Contains(t, text, want)
			}
		})
	}
}

var flagOfOurOwn = flag.String("mpicxtest.own", "", "")

// -count has other processes each time, -short and flags of the program's own come to them.
func TestFlags(t *testing.T) {
	needsProcesses(t)
	if os.Getenv("TEST_FLAGS") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlags$", "-test.count=2", "-test.short", "-test.v", "-mpicxtest.own=x")
		cmd.Env = append(os.Environ(), "TEST_FLAGS=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, 4, strings.Count(string(out), "short: true, own: x"), "%s", out)
		return
	}
	mpicxtest.RunProcesses(t, 2, func(context.Context, *mpicx.Comm) error {
		fmt.Printf("short: %t, own: %s\n", testing.Short(), *flagOfOurOwn)
		return nil
	})
}

// Plans end processes by real signals and statuses. What a process has handed over before is there.
func TestProcessFaults(t *testing.T) {
	const none = -1
	for plan, status := range map[string]int{
		"kill 1 in Allreduce step 2":                                 137,
		"kill 1 by SIGTERM at operation 5":                           143,
		"kill 1 by SIGSEGV in Allreduce step 2":                      2, // Go prints what its goroutines do, and exits
		"exit 1 with status 3 in Allreduce step 2":                   3,
		"exit 1 with status 0 in Allreduce step 2":                   0,
		"kill 1 by SIGKILL in resolve message 1":                     none, // nobody raises anything unless somebody dies
		"stop 1 for 200ms in Allreduce step 2":                       none,
		"kill 2 at operation 999999":                                 none,
		"stop 0 for 100ms at operation 3; kill 1 random seed 7 of 9": 137,
	} {
		t.Run(plan, func(t *testing.T) {
			if !strings.HasPrefix(plan, "stop 1") {
				mpicxtest.NeedsULFM(t)
			}
			begin := time.Now()
			all := mpicxtest.RunProcessFaults(t, 4, plan, func(ctx context.Context, world *mpicx.Comm) error {
				mpicxtest.Hand(-1)
				sum := []int{0}
				var err error
				for i := 0; i < 3 && err == nil; i++ {
					err = mpicx.Allreduce(world, []int{1}, sum, mpicx.Sum).Wait(ctx)
				}
				if isCorrupted(err) {
					err = mpicx.Allreduce(world.Shrink().MustGet(ctx), []int{1}, sum, mpicx.Sum).Wait(ctx)
				}
				mpicxtest.Hand(sum[0])
				return err
			})
			if strings.HasPrefix(plan, "stop 1") {
				require.GreaterOrEqual(t, time.Since(begin), 200*time.Millisecond)
			}
			left := 4
			if status != none {
				require.True(t, all[1].Killed)
				require.Equal(t, status, all[1].Status)
				require.Equal(t, []int{-1}, mpicxtest.ValuesOf[int](t, all[1]))
				left, all = 3, slices.Delete(all, 1, 2)
			}
			for _, p := range all {
				require.False(t, p.Killed)
				require.Equal(t, []int{-1, left}, mpicxtest.ValuesOf[int](t, p))
			}
		})
	}
}
