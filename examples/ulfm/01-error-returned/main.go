// Lesson 1: a peer dies, and an operation that needs it returns an error.
//
//	go run -tags ulfm ./examples/ulfm/01-error-returned
//
// The last rank is killed before it sends what the others wait for. Nobody hangs,
// and nobody is killed along with it: the Wait of each says so, and by a typed
// error who has died. What is learnt:
//
//   - ErrorsReturn asks for errors instead of an end. In MPI the handler to replace is
//     MPI_ERRORS_ARE_FATAL, by MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN).
//   - Starting an operation with a dead process is no error: its completion is. (ULFM:
//     "non-blocking operations must not return an error about process failures
//     during initialization".)
//   - The error is a *mpicx.ProcFailedError, MPI's class MPI_ERR_PROC_FAILED. It says
//     who; Failed, MPIX_Comm_get_failed, says so later.
//
// Try next: take SetErrhandler away. Then the first rank to meet the death has
// all of them told, and each gets a *mpicx.CommCorruptedError instead.
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

	// It stays so, for whatever needs that process.
	if err := mpicx.Send(world, number, victim, 0).Wait(ctx); !lesson.IsDeath(err) {
		return errors.Join(errors.New("expected an error of a message to the dead"), err)
	}
	if failed := world.Failed(); !slices.Contains(failed, victim) {
		return fmt.Errorf("failed are %v, expected rank %d among them", failed, victim)
	}
	return nil
}
