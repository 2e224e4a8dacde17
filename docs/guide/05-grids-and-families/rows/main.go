// Rows has ranks in rows and columns, of which one dies.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

const width, steps = 2, 10

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), program, mpicx.WithRanks(6)))
}

func program(ctx context.Context, world *mpicx.Comm) error {
	ground := world // from which rows and columns are made
	for {
		x := []int{1}
		err := ground.Guard(ctx, func(ctx context.Context) error {
			row, err := ground.Split(ground.Rank()/width, 0).Get(ctx)
			if err != nil {
				return err
			}
			column, err := ground.Split(ground.Rank()%width, 0).Get(ctx)
			if err != nil {
				return err
			}
			for step := range steps {
				if world.Rank() == 3 && step == 5 {
					inject.Die(world)
				}
				for _, line := range []*mpicx.Comm{row, column} {
					if err := mpicx.Allreduce(line, []int{1}, x, mpicx.Sum).Wait(ctx); err != nil {
						return err
					}
				}
			}
			return ground.Agree(1).Wait(ctx)
		})
		if err == nil {
			return ground.Fprintf(ctx, os.Stdout, "%d ranks in its column\n", x[0])
		}
		if !isCorrupted(err) {
			return err
		}
		if ground, err = shrink(ctx, ground); err != nil {
			return err
		}
	}
}

// shrink returns what is left of a broken communicator.
func shrink(ctx context.Context, c *mpicx.Comm) (*mpicx.Comm, error) {
	for {
		smaller, err := c.Shrink().Get(ctx)
		if !isCorrupted(err) {
			return smaller, err
		} // else this rank knew of an error of its row or column alone: now it knows
	}
}

func isCorrupted(err error) bool {
	_, ok := errors.AsType[*mpicx.CommCorruptedError](err)
	return ok
}
