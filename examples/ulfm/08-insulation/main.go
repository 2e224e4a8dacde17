package main

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
)

const steps = 6

var names = [2]string{"solver", "analysis"}

func main() { // one of the solver dies
	lesson.Main(6, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return halves(ctx, world, out, lesson.Faults{{Rank: 2, Step: 3}})
	})
}

func halves(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	mine := world.Rank() % 2
	half, err := world.Split(mine, 0).Get(ctx)
	if err != nil {
		return err
	}
	half.SetErrhandler(mpicx.ErrorsPropagate)
	if _, _, err := lesson.Agreed(ctx, world.Agree(1)); err != nil { // all know that all have their half
		return err
	}

	step, repairs := 1, 0
	for ; ; repairs++ {
		err := half.Guard(ctx, func(ctx context.Context) error { return work(ctx, world, half, &step, faults) })
		if err == nil {
			break
		}
		if _, dead := errors.AsType[*mpicx.CommCorruptedError](err); !dead && !lesson.IsDeath(err) {
			return err
		}
		if half, err = half.Shrink().Get(ctx); err != nil {
			return err
		}
	}
	out.Say(world, "%s: %d steps, %d repairs, %d ranks left", names[mine], steps, repairs, half.Size())

	dead, err := world.AgreeFailed().Get(ctx) // all meet again
	if err == nil {
		out.Say(world, "dead: %v", dead)
	}
	return err
}

// work does the remaining steps.
func work(ctx context.Context, world, half *mpicx.Comm, step *int, faults lesson.Faults) error {
	least := func(a, b int) int { return min(a, b) }
	first, err := mpicx.AllreduceValue(half, *step, least).Get(ctx) // ranks get an error at different steps
	for *step = first; err == nil && *step <= steps; *step++ {
		faults.Here(world, *step, "")
		_, err = mpicx.AllreduceValue(half, *step, func(a, b int) int { return a + b }).Get(ctx)
	}
	if err != nil {
		return err
	}
	return half.Agree(1).Wait(ctx) // no rank leaves before all have finished
}
