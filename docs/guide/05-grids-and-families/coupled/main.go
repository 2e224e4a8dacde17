// Coupled has a solver, and an analysis that looks at what it computes. The analysis dies.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/docs/guide/rod"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

const solvers, steps, every = 3, 1000, 200

func main() {
	if err := mpicx.Run(context.Background(), program, mpicx.WithRanks(solvers+2)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func program(ctx context.Context, world *mpicx.Comm) error {
	color, remoteLeader, run := 0, solvers, solve
	if world.Rank() >= solvers {
		color, remoteLeader, run = 1, 0, analyse
	}
	local, err := world.Split(color, 0).Get(ctx)
	if err != nil {
		return err
	}
	ic, err := mpicx.CreateIntercomm(local, 0, world, remoteLeader, 1).Get(ctx)
	if err != nil {
		return err
	}
	return run(ctx, world, local, ic)
}

// solve computes, and reports to the analysis as long as there is one.
func solve(ctx context.Context, _, local *mpicx.Comm, ic *mpicx.Intercomm) error {
	r := rod.New(local)
	for step := 1; step <= steps; step++ {
		if err := r.Advance(ctx); err != nil {
			return err
		}
		if step%every > 0 || ic.RemoteSize() == 0 {
			continue
		}
		var err error
		if ic, err = report(ctx, local, ic, r, step); err != nil {
			return err
		}
	}
	heat, err := r.Heat(ctx)
	if local.Rank() == 0 {
		fmt.Printf("solver: %d steps, heat %.6f\n", steps, heat)
	}
	return err
}

// report tells the analysis what it needs. It returns the intercommunicator to use from then on.
func report(ctx context.Context, local *mpicx.Comm, ic *mpicx.Intercomm, r *rod.Rod, step int) (*mpicx.Intercomm, error) {
	for ic.RemoteSize() > 0 {
		err := mpicx.InterAllreduce(ic, []float64{float64(step), r.U[1]}, make([]float64, 2), mpicx.Max).Wait(ctx)
		if err != nil && !isCorrupted(err) {
			return nil, err
		}
		// Whether all of the solver have told it, they decide among themselves.
		told := []bool{err == nil}
		if err := mpicx.Allreduce(local, told, told, mpicx.LAnd).Wait(ctx); err != nil {
			return nil, err
		}
		if told[0] {
			return ic, nil
		}
		if ic, err = shrink(ctx, ic); err != nil {
			return nil, err
		}
		if local.Rank() == 0 {
			fmt.Println("solver: ranks of the analysis that are left:", ic.RemoteSize())
		}
	}
	return ic, nil
}

// analyse looks at the reports. Its ranks die, one after the other.
func analyse(ctx context.Context, world, _ *mpicx.Comm, ic *mpicx.Intercomm) error {
	for seen := 0; seen < steps; {
		if world.Rank() == solvers && seen == 400 || world.Rank() == solvers+1 && seen == 600 {
			inject.Die(world)
		}
		news := make([]float64, 2)
		err := mpicx.InterAllreduce(ic, []float64{0, 0}, news, mpicx.Max).Wait(ctx)
		if isCorrupted(err) {
			if ic, err = shrink(ctx, ic); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		seen = int(news[0])
		if ic.Rank() == 0 {
			fmt.Printf("analysis on %d ranks: step %d, hottest %.6f\n", ic.Size(), seen, news[1])
		}
	}
	return nil
}

// shrink returns what is left of a broken intercommunicator.
func shrink(ctx context.Context, ic *mpicx.Intercomm) (*mpicx.Intercomm, error) {
	for {
		smaller, err := ic.Shrink().Get(ctx)
		if !isCorrupted(err) {
			return smaller, err
		} // else this rank was not told before: now it is
	}
}

func isCorrupted(err error) bool {
	_, ok := errors.AsType[*mpicx.CommCorruptedError](err)
	return ok
}
