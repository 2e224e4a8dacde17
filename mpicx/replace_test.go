package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// ulfm runs a job of goroutine ranks with the ULFM backend.
func runWithSpares(t *testing.T, ranks, spares int, fn func(ctx context.Context, world *mpicx.Comm) error) error {
	t.Helper()
	oneProcess(t)
	return mpicx.Run(t.Context(), fn, mpicx.WithRanks(ranks), mpicx.WithSpares(spares), hook.Backend("ulfm").(mpicx.Option))
}

// A spare takes the place of who has died, and knows it; the others keep theirs.
func TestReplace(t *testing.T) {
	var begun atomic.Int32
	err := runWithSpares(t, 4, 2, func(ctx context.Context, world *mpicx.Comm) error {
		begun.Add(1)
		c := world
		if world.Incarnation() == 0 {
			if world.Rank() == 2 {
				mpicxtest.Die(world)
			}
			err := world.Barrier().Wait(ctx)
			if !corrupted(err) {
				return fmt.Errorf("Barrier: %v", err)
			}
			if c, err = world.Replace().Get(ctx); err != nil {
				return err
			}
			if c.Rank() != world.Rank() || c.Size() != world.Size() {
				return fmt.Errorf("rank %d of %d became %d of %d", world.Rank(), world.Size(), c.Rank(), c.Size())
			}
		} else if world.Rank() != 2 || world.Incarnation() != 1 {
			return fmt.Errorf("a spare is rank %d, incarnation %d", world.Rank(), world.Incarnation())
		}
		if got := c.Replaced(); len(got) != 1 || got[0] != 2 {
			return fmt.Errorf("Replaced %v", got)
		}
		all := make([]int, 4)
		if err := mpicx.Allgather(c, []int{c.Rank()}, all).Wait(ctx); err != nil {
			return err
		}
		for i, r := range all {
			if r != i {
				return fmt.Errorf("Allgather %v", all)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 5, begun.Load())
}

// Without enough spares all ranks learn it alike, and Shrink works.
func TestReplaceTooFewSpares(t *testing.T) {
	err := runWithSpares(t, 4, 1, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() >= 2 {
			mpicxtest.Die(world)
		}
		_ = world.Barrier().Wait(ctx)
		for {
			_, err := world.Replace().Get(ctx)
			short, ok := errors.AsType[*mpicx.SpareError](err)
			if !ok {
				return fmt.Errorf("Replace: %v", err)
			}
			if len(short.Places) == 2 {
				if short.Spares != 1 {
					return short
				}
				break
			}
		}
		c, err := world.Shrink().Get(ctx)
		if err != nil {
			return err
		}
		return c.Barrier().Wait(ctx)
	})
	require.NoError(t, err)
}
