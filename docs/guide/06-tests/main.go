// Each rank has a number, and in each step moves half of the way to the mean of all. A rank that
// dies is replaced by a spare.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

func main() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		x, err := solve(ctx, world, 20)
		if err == nil {
			fmt.Printf("%.6f\n", x)
		}
		return err
	}, mpicx.WithRanks(4), mpicx.WithSpares(1))
	mpicx.Exit(err)
}

// solve returns this rank's number after some steps.
func solve(ctx context.Context, world *mpicx.Comm, steps int) (x float64, err error) {
	err = recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
		x = float64(a.Comm.Rank())
		a.Store.Protect("x", &x)
		step := 0
		if a.N > 0 {
			var err error
			step, err = a.Store.Restore(ctx)
			if err != nil && !errors.Is(err, checkpoint.ErrNone) {
				return err
			}
		}
		for ; step < steps; step++ {
			if step%2 == 0 {
				a.Store.Save(ctx, step)
			}
			sum := []float64{x}
			if err := mpicx.Allreduce(a.Comm, sum, sum, mpicx.Sum).Wait(ctx); err != nil {
				return err
			}
			x = (x + sum[0]/float64(a.Comm.Size())) / 2
		}
		return nil
	}, recovery.Replace(), recovery.Checkpoint(checkpoint.Partner(1)))
	return x, err
}
