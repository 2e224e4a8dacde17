package checkpoint_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
)

// Save keeps the variables as they are now, and Restore sets them to what they were in the newest
// version that all ranks have.
func Example() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		st, err := checkpoint.Open(ctx, world, checkpoint.Partner(1))
		if err != nil {
			return err
		}
		x := []float64{float64(world.Rank())}
		st.Protect("x", &x)
		if err := st.Save(ctx, 1).Wait(ctx); err != nil {
			return err
		}
		x[0] = -1 // as an error may leave it
		version, err := st.Restore(ctx)
		fmt.Printf("rank %d: version %d, x %v\n", world.Rank(), version, x)
		return errors.Join(err, st.Close(ctx))
	}, mpicx.WithRanks(2))
	// Unordered output:
	// rank 0: version 1, x [0]
	// rank 1: version 1, x [1]
}

// An iteration that fails is done again from the newest version. The loop is what package
// recovery does for a program.
func Example_loop() {
	failed := false // so far, at rank 2
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		st, err := checkpoint.Open(ctx, world, checkpoint.Partner(1))
		if err != nil {
			return err
		}
		x, step := []float64{float64(world.Rank())}, 0
		st.Protect("x", &x)
		st.Protect("step", &step)
		saved := st.Save(ctx, 0)
		for {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				sum := make([]float64, 1)
				for step < 6 {
					if world.Rank() == 2 && step == 5 && !failed {
						failed = true
						saved.MustWait(ctx) // so that this version is there for sure
						return errors.New("a node of the mesh is inside out")
					}
					if err := mpicx.Allreduce(world, x, sum, mpicx.Sum).Wait(ctx); err != nil {
						return err
					}
					x[0] += sum[0]
					if step++; step%2 == 0 {
						saved = st.Save(ctx, step)
					}
				}
				return nil
			})
			if _, ok := errors.AsType[*mpicx.PropagatedError](err); !ok {
				if world.Rank() == 0 {
					fmt.Println("step", step, "x", x[0])
				}
				return errors.Join(err, st.Close(ctx))
			}
			if _, err := st.Restore(ctx); err != nil {
				return err
			}
			if world.Rank() == 0 {
				fmt.Println(err)
				fmt.Println("back to step", step)
			}
		}
	}, mpicx.WithRanks(4))
	fmt.Println(err)
	// Output:
	// mpicx: error propagated from rank 2: a node of the mesh is inside out
	// back to step 4
	// step 6 x 23436
	// <nil>
}
