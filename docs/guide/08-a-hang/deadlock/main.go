// Command deadlock has two ranks that wait for each other. They get an error, and continue.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), program, mpicx.WithRanks(3), mpicx.WithDeadlockError()))
}

func program(ctx context.Context, world *mpicx.Comm) error {
	err := world.Try(ctx, func(ctx context.Context) error { return swap(ctx, world) })
	world.Barrier().MustWait(ctx) // it works: the error is over
	if world.Rank() == 2 {
		fmt.Fprintln(os.Stderr, "rank 2:", err)
	}
	return nil
}

// swap has ranks 0 and 1 exchange numbers, and is wrong: both receive first.
func swap(ctx context.Context, world *mpicx.Comm) error {
	if world.Rank() == 2 {
		return world.Barrier().Wait(ctx)
	}
	other := 1 - world.Rank()
	if err := mpicx.Recv(world, []int{0}, other, 7).Wait(ctx); err != nil {
		return err
	}
	return mpicx.Send(world, []int{world.Rank()}, other, 7).Wait(ctx)
}
