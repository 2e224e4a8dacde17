//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

func init() {
	// Rank 1 computes, and the others wait for a message that nobody sends. With TEST_DEAF a signal
	// changes nothing of that.
	programs["stuck"] = func() {
		if os.Getenv("TEST_DEAF") != "" {
			came := make(chan os.Signal, 10)
			signal.Notify(came, syscall.SIGINT, syscall.SIGTERM)
		}
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			printPid(world)
			for x := 0; world.Rank() == 1; x = len(fmt.Sprint(x)) { // and so on
			}
			return mpicx.Recv(world, []int{0}, mpicx.AnySource, 9).Wait(ctx)
		})
	}
	programs["chatty"] = func() { // until nobody reads
		rank(func(ctx context.Context, world *mpicx.Comm) error {
			for {
				fmt.Println("y")
				if err := barrier(ctx, world); err != nil {
					return err
				}
			}
		}, blackChannel())
	}
}

// What hangs after a signal is killed after the grace time, or by a second signal, and mpicxrun
// says in one line where each rank was.
func TestGrace(t *testing.T) {
	// On a busy machine ranks 0 and 2 may not have come to their Recv.
	const does = `ranks? [0-2][^;]*: (Recv from any rank, tag 9 on world|computing: nothing pending) at grace_test\.go:\d+`
	for _, test := range []struct {
		grace  string
		signal syscall.Signal
		stop   bool // rank 2
		off    bool // no diagnosis
		why    string
	}{
		{grace: "1s", signal: syscall.SIGTERM, why: "1s after SIGTERM, and killed: " + does + "(; " + does + ")*"},
		{grace: "1h", signal: syscall.SIGINT, stop: true, why: "at a second SIGINT, and killed: " + does + "(; " + does + ")?; rank 2: stopped"},
		{grace: "1s", signal: syscall.SIGINT, off: true, why: "1s after SIGINT, and killed: rank.*no answer"},
	} {
		if signal.Ignored(test.signal) { // nohup runs this test
			continue
		}
		t.Setenv("TEST_DEAF", "1")
		t.Setenv("MPICX_DIAGNOSE", map[bool]string{true: "off"}[test.off])
		j := start(t, "stuck", "-n", "3", "-grace", test.grace)
		pids := j.pids(t, 3)
		if test.stop {
			require.NoError(t, syscall.Kill(pids[2], syscall.SIGSTOP))
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for j.Process.Signal(test.signal) == nil && test.grace == "1h" { // a second one, and those that come too early to be
				time.Sleep(200 * time.Millisecond)
			}
		}()
		j.ends(t, 137)
		<-ended
		require.Regexp(t, "^mpicxrun: still there "+test.why+"\n$", j.errs.String())
		for _, pid := range pids {
			gone(t, pid)
		}
	}
}

// What a signal ends is told in one line, and what a reader of the output has, in none.
func TestEndsThatAreNoNews(t *testing.T) {
	j := start(t, "stuck", "-n", "4")
	j.pids(t, 4)
	j.send(t, syscall.SIGTERM)
	j.ends(t, 128+int(syscall.SIGTERM))
	require.Regexp(t, `(?m)^mpicxrun: SIGTERM has ended ranks? .*$`, j.errs.String()) // on a busy machine some may end by others' ends
	require.Equal(t, 1, strings.Count(j.errs.String(), "mpicxrun: "))

	j = command("chatty", "-n", "4")
	j.loseReader(t)
	j.ends(t, 128+int(syscall.SIGPIPE))
	require.NotContains(t, j.errs.String(), "mpicxrun: ")
}

// SIGQUIT prints where the ranks are, and then all stacks.
func TestQuit(t *testing.T) {
	j := start(t, "stuck", "-n", "3")
	j.pids(t, 3)
	j.send(t, syscall.SIGQUIT)
	j.ends(t, 2)
	require.Regexp(t, `mpicx: on a signal, the ranks of world were in\n(.*\n)*SIGQUIT: quit`, j.errs.String()) // a busy rank may give no answer in time
	t.Setenv("MPICX_DIAGNOSE", "off")
	j = start(t, "stuck", "-n", "3")
	j.pids(t, 3)
	j.send(t, syscall.SIGUSR1) // does nothing
	j.send(t, syscall.SIGQUIT)
	j.ends(t, 2)
	require.NotContains(t, j.errs.String(), "on a signal")
}
