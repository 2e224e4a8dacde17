// First has one error cross: rank 1 returns it, and all ranks get it.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				return errors.New("cell 17 is NaN")
			}
			return world.Barrier().Wait(ctx) // rank 1 does not come
		})
		return world.Fprintf(ctx, os.Stdout, "%v\n", err) // the communicator works
	}, mpicx.WithRanks(4))
	mpicx.Exit(err)
}
