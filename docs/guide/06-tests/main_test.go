package main

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// check solves, and compares this rank's number with the one that is expected.
func check(ctx context.Context, world *mpicx.Comm) error {
	x, err := solve(ctx, world, 4)
	if err != nil {
		return err
	}
	const mean = 1.5
	want := mean + (float64(world.Rank())-mean)/(1<<4)
	if math.Abs(x-want) > 1e-12 {
		return fmt.Errorf("rank %d has %v, expected %v", world.Rank(), x, want)
	}
	return nil
}

func TestSolve(t *testing.T) {
	mpicxtest.Run(t, 4, check)
}

// Whichever rank dies, and whenever, the numbers are the same.
func TestEveryDeath(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	mpicxtest.EveryDeath(t, 4, check, mpicx.WithSpares(1))
}

// A second rank dies while the first is replaced.
func TestDeathInTheRepair(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	k := 1
	for ; ; k++ {
		plan := fmt.Sprintf("must kill 0 in Allreduce step 1 call 3; kill 2 in replace message %d", k)
		if len(mpicxtest.RunFaults(t, 4, plan, check, mpicx.WithSpares(2))) < 2 {
			break
		}
	}
	t.Logf("rank 2 died at each of %d messages", k-1)
}

func TestProcesses(t *testing.T) {
	processes := mpicxtest.RunProcesses(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		mpicxtest.Hand(world.Transport()) // to the test, which is another process
		return check(ctx, world)
	})
	for i, p := range processes {
		t.Logf("process %d has transport %v", i, mpicxtest.ValuesOf[string](t, p))
	}
}

// The last of five processes is a spare.
func TestProcessDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	plan := "must kill 2 by SIGKILL in Allreduce step 2 call 3"
	processes := mpicxtest.RunProcessFaults(t, 5, plan, check, mpicx.WithSpares(1))
	t.Logf("process 2 ended with status %d", processes[2].Status)
}
