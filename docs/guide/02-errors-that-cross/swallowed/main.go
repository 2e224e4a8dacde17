// Swallowed keeps an error for itself that Wait has returned.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	if err := mpicx.Run(context.Background(), program, mpicx.WithRanks(3)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func program(ctx context.Context, world *mpicx.Comm) error {
	err := world.Try(ctx, func(ctx context.Context) error {
		if world.Rank() == 1 {
			return errors.New("disk full")
		}
		err := world.Barrier().Wait(ctx)
		if err != nil && world.Rank() == 2 {
			fmt.Println("rank 2 ignores:", err)
			return nil
		}
		return err
	})
	return world.Fprintf(ctx, os.Stdout, "Try: %v\n", err)
}
