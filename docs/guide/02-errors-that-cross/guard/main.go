// Guard has a rank panic, for which the others would wait forever.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	err := mpicx.Run(context.Background(), program, mpicx.WithRanks(3))
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok { // and p.Stack says where
		fmt.Fprintf(os.Stderr, "rank %d panicked: %v\n", p.Rank, p.Value)
		os.Exit(1)
	}
}

func program(ctx context.Context, world *mpicx.Comm) error {
	err := world.Guard(ctx, func(ctx context.Context) error {
		cells := make([]float64, 8)
		if world.Rank() == 2 {
			cells[len(cells)] = 1 // there is no such cell
		}
		return world.Barrier().Wait(ctx)
	})
	if k, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok && world.Rank() == 0 {
		fmt.Println("Guard:", k)
		fmt.Println("next Wait:", world.Barrier().Wait(ctx))
	}
	return nil
}
