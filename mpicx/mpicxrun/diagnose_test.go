//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// hanging is what the program hangs prints of itself.
const hanging = ` the ranks of world were in
  ranks 0, 1, 3: Barrier #1 on world
  rank 2: Recv from rank 0, tag 9 on world
  the first that differs is rank 2
  ● call 1 of world: Barrier at ranks 0, 1, 3 | none at rank 2
`

// untimed takes out the times of calls.
func untimed(text string) string {
	return regexp.MustCompile(` \(..:..:..\)`).ReplaceAllString(text, "")
}

func init() {
	programs["hangs"] = func() { // until the deadline, or SIGTERM
		ctx := context.Background()
		if d, err := time.ParseDuration(os.Getenv("TEST_DEADLINE")); err == nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
		}
		err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
			printPid(world)
			if world.Rank() == 2 {
				return mpicx.Recv(world, []int{0}, 0, 9).Wait(ctx)
			}
			return world.Barrier().Wait(ctx)
		})
		fmt.Println("Run has returned", err)
	}
}

// The deadline of the processes' Runs has what they were in printed once for the job.
func TestDeadlineOfAJob(t *testing.T) {
	t.Setenv("TEST_DEADLINE", "6s")
	_, _, errs := runToEnd(t, "hangs", "-n", "4")
	require.Equal(t, 1, strings.Count(untimed(errs), "mpicx: the deadline of the job's context has passed; before,"+hanging), errs)
	require.Equal(t, 1, strings.Count(errs, "the ranks of"), errs)
}

// A signal has any process print for all, and mpicxrun's, which gets to all, one of them;
// each time anew.
func TestDiagnosisOnASignal(t *testing.T) {
	j := start(t, "hangs", "-n", "4")
	pids := j.pids(t, 4)
	const found = "mpicx: on a signal," + hanging
	printed := func() int { return strings.Count(j.errs.String(), "mpicx: on a signal") }
	before := 0
	answers := func(send func() error) int { // until no more come, as signals within a second count as one
		require.NoError(t, send())
		for begin := time.Now(); printed() == before; time.Sleep(time.Millisecond) {
			require.Less(t, time.Since(begin), time.Minute, "%s", &j.errs)
		}
		was := before
		for before < printed() {
			before = printed()
			time.Sleep(1100 * time.Millisecond)
		}
		return before - was
	}
	one := func(rank int) func() error { return func() error { return syscall.Kill(pids[rank], syscall.SIGUSR1) } }
	// The first answers may come before all have come to where they hang.
	for begin := time.Now(); !strings.HasSuffix(untimed(j.errs.String()), found); answers(one(3)) {
		require.Less(t, time.Since(begin), time.Minute, "%s", &j.errs)
	}
	all := func() error { return j.Process.Signal(syscall.SIGUSR1) } // passed on by mpicxrun
	for _, send := range []func() error{all, one(1)} {
		for tries := 1; answers(send) != 1; tries++ { // on a busy machine it may come to one a second after another
			require.Less(t, tries, 5, "%s", &j.errs)
		}
		require.True(t, strings.HasSuffix(untimed(j.errs.String()), found), "%s", &j.errs)
	}
	j.send(t, syscall.SIGTERM)
	j.status(t)
}
