package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// D2: a rank that repairs a child is told an error of the parent that came just before it
// began, since others who were told go there.
func TestRepairAfterParentsError(t *testing.T) {
	oneProcess(t)
	var both atomic.Int32
	for i := range 300 {
		propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
			child, err := world.Split(min(world.Rank(), 1), 0).Get(ctx)
			if err != nil {
				return err
			}
			if err := world.Barrier().Wait(ctx); err != nil { // told of it already
				return world.Shrink().Wait(ctx)
			}
			if world.Rank() == 3 {
				fail := func(context.Context) error { return errors.New("of both") }
				_ = child.Guard(ctx, fail)
				_ = world.Guard(ctx, fail)
				return nil
			}
			if world.Rank() > 0 {
				err = child.Barrier().Wait(ctx)
			} else {
				err = world.Barrier().Wait(ctx)
			}
			c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
			if !ok {
				return fmt.Errorf("Barrier: %v", err)
			}
			if c.Of(child) {
				both.Add(1)
				for range i {
					runtime.Gosched()
				}
				err := child.Shrink().Wait(ctx)
				if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); err != nil && (!ok || !c.Of(world)) {
					return fmt.Errorf("Shrink of the child: %v", err)
				}
			}
			if err := world.Barrier().Wait(ctx); !corrupted(err) {
				return fmt.Errorf("Barrier of the world: %v", err)
			}
			if err := world.Shrink().Wait(ctx); err != nil {
				return fmt.Errorf("Shrink of the world: %w", err)
			}
			return nil
		})
	}
	require.NotZero(t, both.Load())
}

// A program that ends while a Shrink of it is pending is left behind; the Shrink of the others
// is not disturbed.
func TestProgramEndsInRepair(t *testing.T) {
	for range 50 {
		propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 2 {
				_ = world.Guard(ctx, func(context.Context) error { return errors.New("leaves") })
			}
			if err := world.Barrier().Wait(ctx); !corrupted(err) {
				return fmt.Errorf("Barrier: %v", err)
			}
			repair := world.Shrink()
			if world.Rank() == 2 {
				return nil
			}
			small, err := repair.Get(ctx)
			if err != nil {
				return err
			}
			if err := small.Barrier().Wait(ctx); err != nil && !corrupted(err) {
				return err
			}
			return nil
		})
	}
}

// One that ends while a Split of it is pending counts as dead there, and joins the round in which
// the others tell each other.
func TestProgramEndsInSplit(t *testing.T) {
	for range 50 {
		propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			split := world.Split(0, 0)
			if world.Rank() == 2 {
				return nil
			}
			if err := split.Wait(ctx); err != nil && !corrupted(err) {
				return fmt.Errorf("Split: %v", err)
			}
			return nil
		})
	}
}
