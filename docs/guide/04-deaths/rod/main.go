// Rod computes the heat in a rod. A spare takes the place of a process that dies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/docs/guide/rod"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

const steps, every = 1000, 100

var wait = flag.Bool("wait", false, "rank 2 waits for somebody to kill it, instead of dying by itself")

func main() {
	flag.Parse()
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, attempt, recovery.Replace(), recovery.Checkpoint(checkpoint.Partner(1)))
	}, mpicx.WithRanks(4), mpicx.WithSpares(1))
	mpicx.Exit(err)
}

func attempt(ctx context.Context, a *recovery.Attempt) error {
	r := rod.New(a.Comm)
	a.Store.Protect("u", &r.U)
	step, err := a.Store.Restore(ctx)
	if err != nil && !errors.Is(err, checkpoint.ErrNone) {
		return err
	}
	if a.Joined {
		fmt.Printf("rank %d is taken over, from step %d, after: %v\n", a.Comm.Rank(), step, a.Cause)
	}
	for ; step < steps; step++ {
		if step%every == 0 {
			if err := a.Store.Save(ctx, step).Wait(ctx); err != nil {
				return err
			}
		}
		if a.N == 0 && a.Comm.Rank() == 2 && step == 299 {
			die(ctx, a.Comm)
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

// die ends the process of this rank.
func die(ctx context.Context, comm *mpicx.Comm) {
	if *wait {
		fmt.Println("kill -9", os.Getpid())
		<-ctx.Done()
	}
	inject.Die(comm)
}
