// Tryall shows what Try leaves open, and TryAll does not: whether the other ranks have succeeded.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	for _, program := range []func(context.Context, *mpicx.Comm) error{withTry, withTryAll} {
		if err := mpicx.Run(context.Background(), program, mpicx.WithRanks(2)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// withTry has rank 0 write its part of a result and continue, before rank 1 fails to write its part.
func withTry(ctx context.Context, world *mpicx.Comm) error {
	const wentOn = 1 // the tag of a message
	err := world.Try(ctx, func(ctx context.Context) error {
		if world.Rank() == 0 {
			return nil // it has written its part
		}
		if err := mpicx.Recv(world, []int{0}, 0, wentOn).Wait(ctx); err != nil {
			return err
		}
		return errors.New("disk full")
	})
	next := error(nil)
	if err == nil { // at rank 0
		sent := mpicx.Send(world, []int{0}, 1, wentOn)
		next = future.WaitAll(ctx, sent, world.Barrier())
	}
	return world.Fprintf(ctx, os.Stdout, "Try: %v; next Wait: %v\n", err, next)
}

// withTryAll does the same. Rank 0 continues when rank 1 has written its part.
func withTryAll(ctx context.Context, world *mpicx.Comm) error {
	err := world.TryAll(ctx, func(context.Context) error {
		if world.Rank() == 0 {
			return nil
		}
		return errors.New("disk full")
	})
	return world.Fprintf(ctx, os.Stdout, "TryAll: %v\n", err)
}
