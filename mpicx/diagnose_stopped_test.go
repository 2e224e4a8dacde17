//go:build unix

package mpicx_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A Diagnosis names the ranks that are dead, and those whose processes are stopped. At first the
// question reaches rank 1 only through rank 0, which is stopped. It is unknown how long a machine
// takes until all ranks are in their operations. So rank 3 asks until they are, and rank 0
// continues only then. The calls of ranks 0 and 2 are told though they do not answer.
func TestDiagnoseOfProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const want = "ranks 1, 4: Recv from rank 3, tag 1 on world; rank 3: computing: nothing pending, last Barrier #1 on world; " +
		"rank 2: dead; rank 0: no answer in time; the first that differs is rank 3; call 1 of world: Barrier at ranks 0-4; ● call 2 of world: Barrier at ranks 0, 1, 4 | none at ranks 2, 3"
	const plan = "must kill 2 at operation 2"
	all := mpicxtest.RunProcessFaults(t, 5, plan, func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if _ = world.Barrier().Wait(ctx); world.Rank() != 3 {
			second := world.Barrier()
			defer func() { _ = second.Wait(ctx) }() // ends by the death, or as rank 3 has returned
		}
		if world.Rank() == 0 {
			mpicx.Send(world, []int{os.Getpid()}, 3, 2).MustWait(ctx)
		}
		if world.Rank() != 3 {
			return mpicx.Recv(world, []int{0}, 3, 1).Wait(ctx)
		}
		pid := []int{0}
		mpicx.Recv(world, pid, 0, 2).MustWait(ctx)
		mpicx.Throw(syscall.Kill(pid[0], syscall.SIGSTOP))
		found := ""
		for begin := time.Now(); found != want && time.Since(begin) < time.Minute; {
			asked, cancel := context.WithTimeout(ctx, time.Second)
			d, _ := world.Diagnose(asked)
			cancel()
			found = untimed(d.String())
		}
		mpicxtest.Hand(found)
		mpicx.Throw(syscall.Kill(pid[0], syscall.SIGCONT))
		for _, r := range []int{0, 1, 4} {
			mpicx.Send(world, []int{0}, r, 1).MustWait(ctx)
		}
		return nil
	})
	require.Equal(t, []string{want}, mpicxtest.ValuesOf[string](t, all[3]))
}
