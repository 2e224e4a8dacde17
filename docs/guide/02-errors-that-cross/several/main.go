// Several has an error end the goroutines of all ranks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), program, mpicx.WithRanks(3)))
}

func program(ctx context.Context, world *mpicx.Comm) error {
	errClose := errors.New("close failed")
	var lines []string
	for k := range 2 {
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				return fmt.Errorf("error %d", k)
			}
			g, ctx := errgroup.WithContext(ctx)
			g.Go(func() error { return mpicx.Recv(world, []int{0}, 1, 7).Wait(ctx) }) // rank 1 never sends
			g.Go(func() error {
				<-ctx.Done() // this goroutine computes, until the context ends
				return ctx.Err()
			})
			err := g.Wait()
			if world.Rank() == 2 {
				return errClose // instead of err
			}
			return err
		})
		lines = append(lines, fmt.Sprintf("%v; close failed: %t\n", err, errors.Is(err, errClose)))
	}
	return world.Fprintf(ctx, os.Stdout, "%s%s", lines[0], lines[1])
}
