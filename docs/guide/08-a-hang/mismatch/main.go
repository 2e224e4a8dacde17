// Ranks make different collective calls, and a message is received as what it is not.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, program := range []func(context.Context, *mpicx.Comm) error{collective, message} {
		err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
			return world.TryAll(ctx, func(ctx context.Context) error { return program(ctx, world) })
		}, mpicx.WithRanks(3))
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

func collective(ctx context.Context, world *mpicx.Comm) error {
	parts := []float64{1, 2, 3}
	if world.Rank() == 2 {
		parts = parts[:2]
	}
	return mpicx.Allreduce(world, parts, parts, mpicx.Sum).Wait(ctx)
}

func message(ctx context.Context, world *mpicx.Comm) error {
	switch world.Rank() {
	case 0:
		return mpicx.Send(world, []int32{1, 2}, 1, 0).Wait(ctx)
	case 1:
		return mpicx.Recv(world, make([]float32, 2), 0, 0).Wait(ctx)
	}
	return nil
}
