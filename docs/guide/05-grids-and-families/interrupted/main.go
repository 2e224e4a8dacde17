// Interrupted shows what becomes of operations, buffers and messages when an error comes, and when
// only a Wait ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	for _, program := range []func(context.Context, *mpicx.Comm) error{byError, byContext} {
		if err := mpicx.Run(context.Background(), program, mpicx.WithRanks(2)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// byError has rank 1 fail, while rank 0 is in an Allreduce, and a message is on its way.
func byError(ctx context.Context, world *mpicx.Comm) error {
	x := []int{1}
	var reduced *future.Future[struct{}]
	_ = world.Try(ctx, func(ctx context.Context) error { // an error, at both ranks
		if world.Rank() == 1 {
			mpicx.Send(world, []int{13}, 0, 7).MustWait(ctx)
			return errors.New("no convergence")
		}
		reduced = mpicx.Allreduce(world, x, x, mpicx.Sum)
		return reduced.Wait(ctx)
	})
	if world.Rank() == 1 {
		return mpicx.Send(world, []int{42}, 0, 7).Wait(ctx)
	}

	done, err := reduced.Test()
	fmt.Println("the Allreduce is done:", done, "-", err)
	_, err = mpicx.Recv(world, x, 1, 7).Get(ctx) // x is this rank's again
	fmt.Println("received:", x[0])
	return err
}

// byContext has rank 0 end a Wait by a context of its own.
func byContext(ctx context.Context, world *mpicx.Comm) error {
	x := []int{1}
	if world.Rank() == 1 {
		if err := world.Barrier().Wait(ctx); err != nil {
			return err
		}
		return mpicx.Send(world, []int{42}, 0, 7).Wait(ctx)
	}
	received := mpicx.Recv(world, x, 1, 7)
	soon, cancel := context.WithCancel(ctx)
	cancel()
	fmt.Println("Wait:", received.Wait(soon))
	done, err := received.Test()
	fmt.Println("the Recv is done:", done, "-", err)

	err = future.WaitAll(ctx, world.Barrier(), received)
	fmt.Println("received:", x[0])
	return err
}
