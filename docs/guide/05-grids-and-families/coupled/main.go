// Coupled has a solver, and an analysis that looks at what it computes. The analysis dies.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/docs/guide/rod"
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

const solvers, steps, every = 3, 1000, 200

func main() {
	mpicx.Exit(mpicx.Run(context.Background(), program, mpicx.WithRanks(solvers+2)))
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
		err := future.WaitAll(ctx,
			mpicx.InterBcast(ic, []int{step}, ic.Own(0)),
			mpicx.InterAllreduce(ic, []float64{r.U[1]}, []float64{0}, mpicx.Max))
		if err != nil && !isCorrupted(err) {
			return nil, err
		}
		// Whether the report has failed, the solver's ranks decide among themselves.
		done := []bool{err == nil}
		if err := mpicx.Allreduce(local, done, done, mpicx.LAnd).Wait(ctx); err != nil {
			return nil, err
		}
		if done[0] {
			return ic, nil
		}
		if ic, err = shrink(ctx, ic); err != nil {
			return nil, err
		}
		if local.Rank() == 0 {
			fmt.Printf("solver: step %d, ranks left in the analysis: %d\n", step, ic.RemoteSize())
		}
	}
	return ic, nil
}

// analyse looks at the reports. Its ranks die, one after the other.
func analyse(ctx context.Context, world, _ *mpicx.Comm, ic *mpicx.Intercomm) error {
	for step := []int{0}; step[0] < steps; {
		hottest := []float64{0}
		err := mpicx.InterBcast(ic, step, ic.Remote(0)).Wait(ctx)
		if err == nil {
			if world.Rank() == solvers && step[0] == 600 || world.Rank() == solvers+1 && step[0] == 800 {
				inject.Die(world)
			}
			err = mpicx.InterAllreduce(ic, hottest, hottest, mpicx.Max).Wait(ctx)
		}
		switch {
		case err == nil && ic.Rank() == 0:
			fmt.Printf("analysis: step %d, ranks: %d, hottest cell: %.6f\n", step[0], ic.Size(), hottest[0])
		case isCorrupted(err):
			step[0] = 0 // the report comes again
			if ic, err = shrink(ctx, ic); err != nil {
				return err
			}
		case err != nil:
			return err
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
