// Skew has two ranks save a state after a barrier, and end with different ones.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), program, mpicx.WithRanks(2)))
}

func program(ctx context.Context, world *mpicx.Comm) error {
	saved := 3 // the newest step that this rank has saved
	err := world.Try(ctx, func(ctx context.Context) error {
		computed := world.Barrier() // both ranks have computed step 4
		if world.Rank() == 0 {
			<-ctx.Done() // rank 0 is slow: when it waits, rank 1 has failed in step 5
		}
		if err := computed.Wait(ctx); err != nil {
			return err
		}
		saved = 4
		if world.Rank() == 1 {
			return errors.New("step 5 failed")
		}
		return nil
	})
	return world.Fprintf(ctx, os.Stdout, "has saved step %d, %v\n", saved, err)
}
