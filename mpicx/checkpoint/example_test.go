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
