// Rod does what byhand does, with packages recovery and checkpoint.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/mpicx/go-mpicx/docs/guide/rod"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

const steps, every = 1000, 100

var always = flag.Bool("always", false, "the bit flips in every attempt")

func main() {
	flag.Parse()
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, attempt, recovery.Checkpoint(checkpoint.Partner(0)))
	}, mpicx.WithRanks(4))
	mpicx.Exit(err)
}

// attempt is called at all ranks, and again at all ranks after an error of any of them.
func attempt(ctx context.Context, a *recovery.Attempt) error {
	r := rod.New(a.Comm)
	a.Store.Protect("u", &r.U)
	step, err := a.Store.Restore(ctx)
	if err != nil && !errors.Is(err, checkpoint.ErrNone) {
		return err
	}
	if a.N > 0 && a.Comm.Rank() == 0 {
		fmt.Printf("attempt %d, from step %d, after: %v\n", a.N, step, a.Cause)
	}
	for ; step < steps; step++ {
		if step%every == 0 {
			if err := a.Store.Save(ctx, step).Wait(ctx); err != nil {
				return err
			}
		}
		if a.Comm.Rank() == 2 && step == 299 && (a.N == 0 || *always) {
			r.U[4] = 1e9 // a bit flips
		}
		if err := r.Advance(ctx); err != nil {
			return err
		}
	}
	heat, err := r.Heat(ctx)
	if a.Comm.Rank() == 0 {
		fmt.Printf("%d steps, heat %.9f\n", step, heat)
	}
	return err
}
