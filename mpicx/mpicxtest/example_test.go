package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// t is what a test function is given: what the examples show is the body of one.
var t *testing.T

// sum is the program under test. It adds up the ranks, without those that die.
func sum(ctx context.Context, comm *mpicx.Comm) (int, error) {
	for {
		s, err := mpicx.AllreduceValue(comm, comm.Rank(), func(a, b int) int { return a + b }).Get(ctx)
		if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok {
			return s, err
		}
		if comm, err = comm.Shrink().Get(ctx); err != nil {
			return 0, err
		}
	}
}

// Four ranks in a test. If they wait for each other, the test fails at once and says what
// each of them waits for.
func ExampleRun() {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		s, err := sum(ctx, world)
		if err == nil && s != 6 {
			err = fmt.Errorf("sum %d, expected 6", s)
		}
		return err
	})
}

// Rank 3 dies before its first message in AllreduceValue. The test fails if it does not die, or if
// a survivor returns an error.
func ExampleRunFaults() {
	mpicxtest.NeedsULFM(t) // otherwise the test fails without -tags ulfm
	mpicxtest.RunFaults(t, 4, "must kill 3 in AllreduceValue step 1", func(ctx context.Context, world *mpicx.Comm) error {
		s, err := sum(ctx, world)
		if err == nil && s != 3 {
			err = fmt.Errorf("sum %d, expected 3", s)
		}
		return err
	})
}

// Each of four ranks dies at each of its operations. A failure names the plan that replays it.
func ExampleEveryDeath() {
	mpicxtest.NeedsULFM(t)
	mpicxtest.EveryDeath(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		_, err := sum(ctx, world)
		return err
	})
}

// Four processes of this machine. What a process computes comes to the test by Hand.
func ExampleRunProcesses() {
	processes := mpicxtest.RunProcesses(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		s, err := sum(ctx, world)
		mpicxtest.Hand(s)
		return err
	})
	for rank, p := range processes {
		if sums := mpicxtest.ValuesOf[int](t, p); len(sums) != 1 || sums[0] != 6 {
			t.Errorf("rank %d has %v, expected 6", rank, sums)
		}
	}
}

func TestExamples(outer *testing.T) {
	for name, example := range map[string]func(){
		"Run": ExampleRun, "RunFaults": ExampleRunFaults, "EveryDeath": ExampleEveryDeath, "RunProcesses": ExampleRunProcesses,
	} {
		outer.Run(name, func(inner *testing.T) {
			t = inner
			example()
		})
	}
}
