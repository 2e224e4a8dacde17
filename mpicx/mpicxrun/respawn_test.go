//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

func init() {
	// The process of each place exits as often as TEST_TIMES says, one after another. Then each
	// rank prints its place, and its number in the job.
	programs["respawn"] = func() {
		times, _ := strconv.Atoi(os.Getenv("TEST_TIMES"))
		how := os.Getenv("TEST_START")
		if (how == "exit" || how == "kill") && own() >= 3 && own()%2 > 0 { // every other one dies while it starts
			if how == "exit" {
				os.Exit(0)
			}
			_ = kill()
		}
		rank(func(ctx context.Context, c *mpicx.Comm) error {
			for {
				all, err := mpicx.AllgatherValue(c, c.Incarnation()).Get(ctx)
				if how == "remove" { // all have been started
					_ = os.Remove(os.Args[0])
				}
				switch {
				case err != nil:
					if corrupted, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
						corrupted.Reason(ctx, corrupted.Dead[0])
					}
					fmt.Printf("%+v\n", err)
					c = c.Replace().MustGet(ctx)
				case slices.Min(all) >= times:
					fmt.Printf("rank %d of %d, incarnation %d, number %d\n", c.Rank(), c.Size(), c.Incarnation(), own())
					return nil
				case c.Rank() == slices.Index(all, slices.Min(all)):
					os.Exit(10 + own())
				}
			}
		}, ulfm(), mpicx.WithRespawn())
	}
	// An Instance of the processes with which the job begins, and several Runs. In the last one
	// rank 1 dies.
	programs["respawn in the last run"] = func() {
		ctx := context.Background()
		i, err := mpicx.Initialize(ctx, ulfm())
		must(err)
		if own() >= 3 {
			fmt.Println("no world:", i.World() == nil)
		}
		for last := range 3 {
			fn := func(ctx context.Context, c *mpicx.Comm) error {
				if last == 2 && c.Rank() == 1 && c.Incarnation() == 0 {
					_ = kill()
				}
				c, err := replacing(ctx, c)
				if err == nil {
					fmt.Printf("run %d, rank %d\n", last, c.Rank())
				}
				return err
			}
			opts := []mpicx.Option{ulfm(), mpicx.WithRespawn()}[:1+min(last, 1)] // the first has no fresh ranks
			rank(fn, opts...)
		}
		must(i.Finalize(ctx))
	}
	// Each rank prints its process, and waits with the others, at full strength. Rank 1 dies of a
	// signal, and the others do not.
	programs["rounds at full strength"] = func() {
		came := make(chan os.Signal, 1)
		signal.Notify(came, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1)
		go func() {
			if <-came; own() == 1 {
				_ = kill()
			}
		}()
		rank(func(ctx context.Context, c *mpicx.Comm) error {
			printPid(c)
			var err error
			for err == nil {
				c, err = replacing(ctx, c)
			}
			return err
		}, ulfm(), mpicx.WithRespawn())
	}
}

// More processes die than the job has, each place twice, and the job is at full strength again. Nothing
// is started if nobody dies.
func TestRespawn(t *testing.T) {
	const n = 3
	for _, times := range []int{0, 2} {
		t.Setenv("TEST_TIMES", strconv.Itoa(times))
		out, errs := succeeds(t, "respawn", "-n", strconv.Itoa(n), "-respawn", "6", "-label")
		for r := range n {
			require.Contains(t, out, fmt.Sprintf("] rank %d of %d, incarnation %d, number ", r, n, times))
			require.Contains(t, out, fmt.Sprintf("[%d] rank ", n*times+r))
		}
		require.Equal(t, n*times, strings.Count(errs, "\n"), errs)
		require.Equal(t, n*times, strings.Count(errs, "has died: exit status 1"), errs)
		for process := range n * times {
			require.Contains(t, out, fmt.Sprintf("  rank %d has ended: exit status %d\n", process%n, 10+process))
		}
	}
}

// Processes that die while they start are replaced as well.
func TestRespawnDiesAtStart(t *testing.T) {
	t.Setenv("TEST_TIMES", "1")
	for _, how := range []string{"exit", "kill"} {
		t.Setenv("TEST_START", how)
		out, errs := succeeds(t, "respawn", "-n", "3", "-respawn", "10")
		require.Equal(t, 3, strings.Count(out, "number "), out)
		require.Regexp(t, "rank 3 has died: (exit status 0|signal: killed)", errs)
	}
}

// If the program is gone, no process can be started, and the survivors learn it.
func TestRespawnCannotStart(t *testing.T) {
	text, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, text, 0o700))
	t.Setenv("TEST_TIMES", "1")
	t.Setenv("TEST_START", "remove")
	j := command("respawn", "-n", "3", "-respawn", "2")
	j.Args[len(j.Args)-1] = program
	require.NoError(t, j.Start())
	require.NotZero(t, j.status(t))
	require.Contains(t, j.errs.String(), "mpicxrun: rank 3 can't be started: ")
	require.Contains(t, j.errs.String(), "mpicxrun: rank 4 can't be started: ")
	require.Contains(t, j.errs.String(), "0 spares or fresh ranks are left")
}

// When no more processes can be started, Replace says so. A job whose launcher starts no processes
// later is refused.
func TestRespawnRefused(t *testing.T) {
	t.Setenv("TEST_TIMES", "2")
	for why, args := range map[string][]string{
		"0 spares or fresh ranks are left":              {"-n", "3", "-respawn", "4"},
		"mpicxrun -respawn":                             {"-n", "2"},
		"2 processes, and 200 later, expected 1 to 128": {"-n", "2", "-respawn", "200"},
	} {
		status, out, errs := runToEnd(t, "respawn", args...)
		require.Equal(t, strings.HasSuffix(why, "128"), status == 2, errs)
		require.NotZero(t, status)
		require.NotContains(t, out, "incarnation")
		require.Contains(t, errs, why)
	}
}

// A fresh process calls Initialize and the earlier Runs as well, in which it has no rank.
func TestRespawnWithInstance(t *testing.T) {
	out, errs := succeeds(t, "respawn in the last run", "-n", "3", "-respawn", "2")
	for r := range 3 {
		require.Equal(t, 3, strings.Count(out, fmt.Sprintf(", rank %d\n", r)), out)
	}
	require.Contains(t, out, "no world: true\n")
	require.Equal(t, "mpicxrun: rank 1 has died: signal: killed\n", errs)
}

// After a signal that asks the job to end, no process is started: it would not know of the signal.
func TestRespawnAfterSignal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skip("nohup runs this test, and mpicxrun ignores the signal too")
			}
			j := start(t, "rounds at full strength", "-n", "3", "-respawn", "2")
			j.pids(t, 3)
			j.send(t, s)
			require.NotZero(t, j.status(t))
			require.Equal(t, 3, strings.Count(j.out.String(), "pid "), &j.out)
			for r := 3; r < 5; r++ {
				require.Contains(t, j.errs.String(), fmt.Sprintf("mpicxrun: rank %d can't be started: the job was asked to end (%v)", r, s))
			}
			require.Contains(t, j.errs.String(), "0 spares or fresh ranks are left")
		})
	}
	// Other signals do not end the job.
	j := start(t, "rounds at full strength", "-n", "2", "-respawn", "2")
	j.pids(t, 2)
	j.send(t, syscall.SIGUSR1)
	j.says(t, "pid 1 ", 2)
}

// When mpicxrun is killed, so are the processes that were started later.
func TestRespawnNoOrphans(t *testing.T) {
	j := start(t, "rounds at full strength", "-n", "2", "-respawn", "2")
	pids := j.pids(t, 2)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGKILL))
	j.says(t, "pid 1 ", 2)
	j.says(t, "\n", 3)
	pids = append(pids, j.pids(t, 2)[1]) // the last that was printed
	require.NoError(t, j.Process.Kill())
	_ = j.Wait()
	for _, pid := range pids {
		gone(t, pid)
	}
	leaveNothing(t, j.Process.Pid)
}
