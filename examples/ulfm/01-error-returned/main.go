package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

func main() {
	lesson.Main(4, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return oneDies(ctx, world, out, world.Size()-1)
	})
}

func oneDies(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, victim int) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	if world.Rank() == victim {
		inject.Die(world)
	}

	number := []int{0}
	f := mpicx.Recv(world, number, victim, 0)
	err := f.Wait(ctx)

	dead, ok := errors.AsType[*mpicx.ProcFailedError](err)
	if !ok {
		return errors.Join(errors.New("expected a *ProcFailedError"), err)
	}
	out.Say(world, "%v", err)
	out.Say(world, "I live on, without %v of %d", dead.Ranks, world.Size())

	// Every later operation that needs the dead process fails as well.
	if err := mpicx.Send(world, number, victim, 0).Wait(ctx); !lesson.IsDeath(err) {
		return errors.Join(errors.New("expected an error of a message to the dead"), err)
	}
	if failed := world.Failed(); !slices.Contains(failed, victim) {
		return fmt.Errorf("failed are %v, expected rank %d among them", failed, victim)
	}
	return nil
}
