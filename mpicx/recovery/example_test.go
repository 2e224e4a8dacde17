package recovery_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// Rank 2 fails in the first attempt, and Run calls the function again at all ranks.
func ExampleRun() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			if a.N == 0 && a.Comm.Rank() == 2 {
				return errors.New("no convergence")
			}
			if err := a.Comm.Barrier().Wait(ctx); err != nil {
				return err
			}
			if a.Comm.Rank() == 0 {
				fmt.Printf("attempt %d, after: %v\n", a.N, a.Cause)
			}
			return nil
		})
	}, mpicx.WithRanks(4))
	fmt.Println(err)
	// Output:
	// attempt 1, after: mpicx: error propagated from rank 2: no convergence
	// <nil>
}

// A solver, what must survive, and what to do about a lost rank: Run does the rest. Here
// rank 2 fails once, and all go back to the newest checkpoint.
func ExampleCheckpoint() {
	const steps = 6
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			me := a.Comm.Rank()
			x, sum, step := []float64{float64(me)}, []float64{0}, 0
			a.Store.Protect("x", &x)
			if a.N > 0 {
				var err error
				if step, err = a.Store.Restore(ctx); err != nil && !errors.Is(err, checkpoint.ErrNone) {
					return err
				}
				if me == 0 {
					fmt.Println(a.Cause)
					fmt.Println("back to step", step)
				}
			}
			for step++; step <= steps; step++ {
				if a.N == 0 && me == 2 && step == 5 {
					return errors.New("a node of the mesh is inside out")
				}
				if err := mpicx.Allreduce(a.Comm, x, sum, mpicx.Sum).Wait(ctx); err != nil {
					return err
				}
				x[0] += sum[0]
				if step%2 == 0 {
					if err := a.Store.Save(ctx, step).Wait(ctx); err != nil {
						return err
					}
				}
			}
			if me == 0 {
				fmt.Println(x[0])
			}
			return nil
		}, recovery.Replace(), recovery.ElseShrink(), recovery.Checkpoint(checkpoint.Partner(1)))
	}, mpicx.WithRanks(4))
	fmt.Println(err)
	// Output:
	// mpicx: error propagated from rank 2: a node of the mesh is inside out
	// back to step 4
	// 23436
	// <nil>
}

// Levels: an error of a pair of ranks is handled in the pair. What it gives up on is the
// outer level's.
func ExampleRun_levels() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, outer *recovery.Attempt) error {
			if world.Rank() == 0 && outer.N > 0 {
				fmt.Println("all:", outer.Cause)
			}
			pair, err := outer.Comm.Split(world.Rank()/2, 0).Get(ctx)
			if err != nil {
				return err
			}
			return recovery.Run(ctx, pair, func(ctx context.Context, inner *recovery.Attempt) error {
				if world.Rank() == 2 && inner.N > 0 {
					fmt.Println("ranks 2 and 3:", inner.Cause)
				}
				switch {
				case world.Rank() == 3 && outer.N == 0 && inner.N == 0:
					return errors.New("a small inconsistency")
				case world.Rank() == 3 && outer.N == 0:
					return inner.GiveUp(errors.New("a great one"))
				}
				return inner.Comm.Barrier().Wait(ctx)
			})
		})
	}, mpicx.WithRanks(6))
	fmt.Println(err)
	// Output:
	// ranks 2 and 3: mpicx: error propagated from rank 1: a small inconsistency
	// all: mpicx: error propagated from ranks 2, 3: recovery: given up after 2 attempts: mpicx: error propagated from rank 1: a great one
	// <nil>
}
