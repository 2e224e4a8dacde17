package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mpicx/go-mpicx/mpicx"
)

// An operation returns a future at once; Wait and Get say how it ended.
func ExampleRun() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		const tag = 1
		answer := []int{0}
		switch world.Rank() {
		case 0:
			answer[0] = 42
			return mpicx.Send(world, answer, 1, tag).Wait(ctx)
		case 1:
			status, err := mpicx.Recv(world, answer, 0, tag).Get(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("%d from rank %d\n", answer[0], status.Source)
		}
		return nil
	}, mpicx.WithRanks(2))
	fmt.Println(err)
	// Output:
	// 42 from rank 0
	// <nil>
}

// A local error becomes everyone's: each rank's Try returns the same error, and
// the communicator works on.
func ExampleComm_Try() {
	diverged := errors.New("the solver diverged")
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 2 {
				return diverged
			}
			return world.Barrier().Wait(ctx) // would wait for rank 2 forever
		})
		if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok && world.Rank() == 0 {
			fmt.Println(err)
			fmt.Println(p.Failures[0].Rank)
		}
		if world.Rank() == 2 {
			fmt.Println("mine:", errors.Is(err, diverged))
		}
		return world.Barrier().Wait(ctx)
	}, mpicx.WithRanks(4))
	// Unordered output:
	// mine: true
	// mpicx: error propagated from rank 2: the solver diverged
	// 2
}

// Rank 1 fails once. No rank leaves TryAll before all have succeeded, so all make the same
// number of attempts.
func ExampleComm_TryAll() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		for attempt := 1; ; attempt++ {
			err := world.TryAll(ctx, func(context.Context) error {
				if world.Rank() == 1 && attempt == 1 {
					return errors.New("no convergence")
				}
				return nil // rank 0 has nothing to wait for: Try would return nil here
			})
			if _, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
				continue
			}
			fmt.Printf("rank %d: attempt %d, %v\n", world.Rank(), attempt, err)
			return err
		}
	}, mpicx.WithRanks(2))
	// Unordered output:
	// rank 0: attempt 2, <nil>
	// rank 1: attempt 2, <nil>
}

// A rank that finds an error outside of a Try tells all others: each gets it from the Wait that
// it is in.
func ExampleComm_Signal() {
	full := errors.New("the disk is full")
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		var err error
		if world.Rank() == 1 {
			err = world.Signal(ctx, full)
			fmt.Println("rank 1 has the cause itself:", errors.Is(err, full))
		} else {
			err = world.Barrier().Wait(ctx)
			fmt.Println("rank 0:", err)
		}
		return world.Barrier().Wait(ctx) // the communicator works
	}, mpicx.WithRanks(2))
	// Unordered output:
	// rank 0: mpicx: error propagated from rank 1: the disk is full
	// rank 1 has the cause itself: true
}

// SignalError is for programs that have error codes.
func ExampleComm_SignalError() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		var err error
		if world.Rank() == 1 {
			err = world.SignalError(ctx, 666)
		} else {
			err = mpicx.Recv(world, []int{0}, 1, 1).Wait(ctx)
		}
		if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok && world.Rank() == 0 {
			fmt.Printf("code %d from rank %d\n", p.Failures[0].Code, p.Failures[0].Rank)
		}
		return nil
	}, mpicx.WithRanks(2))
	// Output:
	// code 666 from rank 1
}

// Deep inside a computation Throw spares every function in between its error result.
func ExampleThrow() {
	root := func(x float64) float64 {
		if x < 0 {
			mpicx.Throw(fmt.Errorf("root of %g", x))
		}
		return math.Sqrt(x)
	}
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			x := root(float64(1 - world.Rank())) // rank 2 throws
			return mpicx.Allreduce(world, []float64{x}, []float64{0}, mpicx.Sum).Wait(ctx)
		})
		if world.Rank() == 0 {
			fmt.Println(err)
		}
		return nil
	}, mpicx.WithRanks(3))
	// Output:
	// mpicx: error propagated from rank 2: root of -1
}

// A rank that leaves Guard by an error or a panic will not be there for the
// others: they are told, instead of waiting for it.
func ExampleComm_Guard() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Guard(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				return errors.New("out of memory")
			}
			return world.Barrier().Wait(ctx)
		})
		if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
			fmt.Println(err)
		}
		return nil
	}, mpicx.WithRanks(2))
	// Output:
	// mpicx: communicator corrupted by rank 1: out of memory
}

// Collective operations are futures, too; MustWait throws the error, for Try to take back.
func ExampleAllreduce() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return world.Try(ctx, func(ctx context.Context) error {
			sum := make([]float64, 2)
			f := mpicx.Allreduce(world, []float64{1, float64(world.Rank())}, sum, mpicx.Sum)
			// … compute something in the meantime …
			f.MustWait(ctx)
			if world.Rank() == 0 {
				fmt.Println(sum)
			}
			return nil
		})
	}, mpicx.WithRanks(4))
	// Output:
	// [4 6]
}

// Values of any type that encoding/gob takes.
func ExampleGatherValue() {
	type progress struct{ Rank, Iterations int }
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		all, err := mpicx.GatherValue(world, progress{world.Rank(), 10 * world.Rank()}, 0).Get(ctx)
		if world.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	}, mpicx.WithRanks(3))
	// Output:
	// [{0 0} {1 10} {2 20}]
}
