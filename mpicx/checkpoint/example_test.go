package checkpoint_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
)

// An iteration that fails is done again from the newest version. The loop is what package
// recovery does for a program.
func Example() {
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
