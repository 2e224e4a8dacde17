// Wrong makes three mistakes of the first day.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	for _, program := range []func(context.Context, *mpicx.Comm) error{border, element, differ} {
		err := mpicx.Run(context.Background(), program, mpicx.WithRanks(2))
		if e, ok := errors.AsType[*mpicx.MPIError](err); ok {
			fmt.Println(e)
		}
	}
}

// border forgets that the last rank has no neighbour to its right.
func border(ctx context.Context, world *mpicx.Comm) error {
	return mpicx.Send(world, []float64{1}, world.Rank()+1, 1).Wait(ctx)
}

// element receives other elements than it sends.
func element(ctx context.Context, world *mpicx.Comm) error {
	if world.Rank() == 0 {
		return mpicx.Send(world, []float64{1, 2, 3}, 1, 1).Wait(ctx)
	}
	return mpicx.Recv(world, make([]float32, 3), 0, 1).Wait(ctx)
}

// differ calls another collective operation at rank 1 than at rank 0.
func differ(ctx context.Context, world *mpicx.Comm) error {
	x := []float64{float64(world.Rank())}
	op := mpicx.Sum
	if world.Rank() == 1 {
		op = mpicx.Max
	}
	return mpicx.Allreduce(world, x, x, op).Wait(ctx)
}
