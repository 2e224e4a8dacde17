package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// AgreeFailed: all get the deaths that one knows of, on a revoked communicator too, each in
// a result of its own, and whatever is acknowledged.
func TestAgreeFailed(t *testing.T) {
	mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		dead, err := world.AgreeFailed().Get(ctx)
		if err != nil || len(dead) > 0 {
			return fmt.Errorf("nobody is dead: %v %w", dead, err)
		}
		switch world.Rank() {
		case 1:
			mpicxtest.Die(world)
		case 2: // it alone waits until it knows
			if err := deadIsOrNil(world, ctx); err != nil {
				return err
			}
			if err := world.Revoke(ctx); err != nil {
				return err
			}
		}
		for range 2 {
			dead, err := world.AgreeFailed().Get(ctx)
			if err != nil || !slices.Equal(dead, []int{1}) || !slices.Equal(world.Failed(), dead) {
				return fmt.Errorf("rank 1 is dead: %v, Failed says %v, %w", dead, world.Failed(), err)
			}
			dead[0] = -1 // nobody else's
		}
		world.AckFailed(1)
		if err := world.Agree(1).Wait(ctx); err != nil {
			return fmt.Errorf("all have acknowledged: %w", err)
		}
		if world.Rank() == 0 {
			err = world.Agree(1).Wait(ctx)
		} else {
			err = world.AgreeFailed().Wait(ctx)
		}
		if m, ok := errors.AsType[*mpicx.MPIError](err); !ok || !strings.Contains(m.Text, "Agree and AgreeFailed") {
			return fmt.Errorf("got %w", err)
		}
		return world.AgreeFailed().Wait(ctx) // and go on
	})
}
