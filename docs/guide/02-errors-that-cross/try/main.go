// Try has one rank fail while the others are in three different places.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), program, mpicx.WithRanks(4)))
}

func program(ctx context.Context, world *mpicx.Comm) error {
	diverged := errors.New("the residual is NaN")
	err := world.Try(ctx, func(ctx context.Context) error {
		switch world.Rank() {
		case 0:
			return mpicx.Recv(world, []float64{0}, 1, 7).Wait(ctx) // rank 1 never sends
		case 1:
			return world.Barrier().Wait(ctx) // the others never come
		case 2:
			return diverged
		}
		for ctx.Err() == nil {
			// rank 3 computes, without a message
		}
		return ctx.Err()
	})
	if err := world.Fprintf(ctx, os.Stdout, "%v; raised here: %t\n", err, errors.Is(err, diverged)); err != nil {
		return err
	}

	p, ok := errors.AsType[*mpicx.PropagatedError](err)
	if !ok {
		return err
	}
	failures := []int{len(p.Failures)}
	err = mpicx.Allreduce(world, failures, failures, mpicx.Sum).Wait(ctx) // the communicator works
	if world.Rank() == 0 {
		fmt.Println("all ranks together know", failures[0], "failures")
	}
	return err
}
