// Byhand computes the heat in a rod. When a rank fails, all go back to a state that all have.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/docs/guide/rod"
	"github.com/mpicx/go-mpicx/mpicx"
)

const steps, every = 1000, 100 // steps, and from one version to the next

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), solve, mpicx.WithRanks(4)))
}

// A version is a rank's part of a state to go back to.
type version struct {
	step int
	u    []float64
}

func solve(ctx context.Context, world *mpicx.Comm) error {
	r, step := rod.New(world), 0
	versions := [2]version{{0, slices.Clone(r.U)}} // the two newest
	flipped := false                               // a bit of rank 2's memory

	goBack := false
	for finished := false; !finished; {
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if goBack {
				newest := []int{max(versions[0].step, versions[1].step)}
				if err := mpicx.Allreduce(world, newest, newest, mpicx.Min).Wait(ctx); err != nil {
					return err
				}
				step = newest[0]
				copy(r.U, versions[step/every%2].u)
				if world.Rank() == 0 {
					fmt.Println("back to step", step)
				}
			}
			for range every {
				if world.Rank() == 2 && step == 299 && !flipped {
					r.U[4], flipped = 1e9, true
				}
				if err := r.Advance(ctx); err != nil {
					return err
				}
				step++
			}
			versions[step/every%2] = version{step, slices.Clone(r.U)}
			return nil
		})
		if _, goBack = errors.AsType[*mpicx.PropagatedError](err); !goBack && err != nil {
			return err
		}
		if goBack && world.Rank() == 0 {
			fmt.Println(err)
		}
		finished = !goBack && step == steps
	}
	heat, err := r.Heat(ctx)
	if world.Rank() == 0 {
		fmt.Printf("%d steps, heat %.9f\n", step, heat)
	}
	return err
}
