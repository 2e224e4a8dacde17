package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		for _, fault := range []bool{false, true} {
			if err := listing(ctx, os.Stdout, world, fault); err != nil {
				return err
			}
		}
		return nil
	}, mpicx.WithRanks(2))
	mpicx.Exit(err)
}

// fault is the error that rank 0 throws instead of sending. Its code is the listing's.
type fault struct{}

func (fault) Error() string  { return "the answer is not known yet" }
func (fault) ErrorCode() int { return 666 }

// listing is Listing 1 at one of two ranks.
func listing(ctx context.Context, w io.Writer, world *mpicx.Comm, withFault bool) error {
	var saw string
	err := world.Guard(ctx, func(ctx context.Context) error { // catch corrupted communicators
		answer := []int32{0}
		err := world.Try(ctx, func(ctx context.Context) error { // catch local and remote errors
			var f *future.Future[mpicx.Status]
			if world.Rank() == 0 {
				if withFault {
					mpicx.Throw(fault{})
				}
				answer[0] = 42
				f = mpicx.Send(world, answer, 1, 0)
			} else {
				f = mpicx.Recv(world, answer, 0, 0)
			}
			f.MustWait(ctx) // the buffer can be used again
			return nil
		})
		if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
			// All ranks are here, and the communicator works: recover.
			saw = fmt.Sprintf("code %d of rank %d, %q; raised here: %t",
				p.Failures[0].Code, p.Failures[0].Rank, p.Failures[0].Message, errors.Is(err, fault{}))
			return nil
		}
		saw = fmt.Sprintf("answer %d", answer[0])
		return err
	})
	if k, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		// Repair, roll back: this communicator is lost.
		saw = fmt.Sprint("corrupted by ", k.Failures)
	}
	if err != nil {
		return err
	}
	return report(ctx, w, world, saw, withFault)
}

// report prints what all ranks saw, in order of rank.
func report(ctx context.Context, w io.Writer, world *mpicx.Comm, saw string, withFault bool) error {
	all, err := mpicx.GatherValue(world, saw, 0).Get(ctx)
	if world.Rank() == 0 && err == nil {
		fmt.Fprintf(w, "with a fault: %t\n", withFault)
		for rank, s := range all {
			fmt.Fprintf(w, "  rank %d saw %s\n", rank, s)
		}
	}
	return err
}
