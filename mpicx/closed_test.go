package mpicx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// P8: what is pending on a communicator that all have closed ends with an error of the one
// that it was made from.
func TestPendingOnAClosedCommunicator(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		dup := world.Dup().MustGet(ctx)
		receive := mpicx.Recv(dup, []int{0}, 1-world.Rank(), 5) // of what is never sent
		if err := dup.Close(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			settle()
			if err := propagated(world.SignalError(ctx, 7), 7); err != nil {
				return err
			}
			if done, err := receive.Test(); !done || propagated(err, 7) != nil {
				return fmt.Errorf("after the error: done %t, %v", done, err)
			}
		} else if err := propagated(receive.Wait(ctx), 7); err != nil {
			return err
		}
		return first(exchange(ctx, world, 1), world.Dup().MustGet(ctx).Close(ctx))
	})
}
