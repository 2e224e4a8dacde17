// Swallowed keeps an error for itself that Wait has returned, inside a Try and outside.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), program, mpicx.WithRanks(3)))
}

func program(ctx context.Context, world *mpicx.Comm) error {
	step := func(ctx context.Context) error {
		if world.Rank() == 1 {
			return world.Signal(ctx, errors.New("disk full"))
		}
		err := world.Barrier().Wait(ctx)
		if world.Rank() == 2 {
			return nil
		}
		return err
	}
	inside := world.Try(ctx, step)
	outside := step(ctx) // no Try is running
	return world.Fprintf(ctx, os.Stdout, "inside: %v\noutside: %v\n", inside, outside)
}
