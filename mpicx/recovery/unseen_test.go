package recovery_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// losing is a program in which rank 1 dies, at a rank that is to recover from that in any way.
func losing(ctx context.Context, world *mpicx.Comm) error {
	return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
		a.Comm.Barrier().MustWait(ctx)
		if a.Comm.Rank() == 1 {
			inject.Die(world)
		}
		return a.Comm.Barrier().Wait(ctx)
	}, recovery.Replace(), recovery.ElseShrink())
}

// Where nobody can go on after a death, each rank has one error, which says so once.
func TestDeathThatNothingRepairs(t *testing.T) {
	if ulfm || runtime.GOOS == "windows" {
		t.Skip("the others go on, or no ranks are processes")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLosingProcesses$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), "MPICX_TEST_LOSING=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	said := regexp.MustCompile(`rank \d: mpicx: communicator corrupted by rank 1: its process has died; [^:]*\n`)
	require.Len(t, said.FindAll(out, -1), 2, "%s", out)
}

func TestLosingProcesses(t *testing.T) {
	if os.Getenv("MPICX_TEST_LOSING") == "" {
		t.Skip("only TestDeathThatNothingRepairs runs it")
	}
	mpicxtest.RunProcesses(t, 3, losing)
}
