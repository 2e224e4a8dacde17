// Pieces integrates 4/(1+x²) from 0 to 1, on the ranks that there are. Rank 1 dies.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

const pieces = 1000

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), integrate, mpicx.WithRanks(4)))
}

func integrate(ctx context.Context, world *mpicx.Comm) error {
	comm, sum := world, []float64{0}
	for {
		err := comm.Guard(ctx, func(ctx context.Context) error {
			sum[0] = 0
			for p := comm.Rank(); p < pieces; p += comm.Size() {
				x := (float64(p) + 0.5) / pieces
				sum[0] += 4 / (1 + x*x) / pieces
				if world.Rank() == 1 && p > pieces/2 {
					inject.Die(world)
				}
			}
			if err := mpicx.Allreduce(comm, sum, sum, mpicx.Sum).Wait(ctx); err != nil {
				return err
			}
			return comm.Agree(1).Wait(ctx) // nobody leaves before all have the sum
		})
		if err == nil {
			return comm.Fprintf(ctx, os.Stdout, "was rank %d, has %.6f\n", world.Rank(), sum[0])
		}
		k, ok := errors.AsType[*mpicx.CommCorruptedError](err)
		if !ok {
			return err
		}
		if comm, err = comm.Shrink().Get(ctx); err != nil {
			return err
		}
		if comm.Rank() == 0 {
			fmt.Printf("%v; %d ranks go on\n", k, comm.Size())
		}
	}
}
