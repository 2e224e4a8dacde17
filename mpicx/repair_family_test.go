package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// D2: a rank that repairs a corrupted child is told an error of the parent in place of that, if the
// program was not told it before. The others go where that is handled, and never come to the repair.
func TestRepairAfterParentsError(t *testing.T) {
	fakeTime(t)
	raise := map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"propagated": func(ctx context.Context, world *mpicx.Comm) error { return world.SignalError(ctx, 7) },
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error {
			return world.Guard(ctx, func(context.Context) error { return errors.New("of the world") })
		},
	}
	repairs := map[string]func(ctx context.Context, child *mpicx.Comm) error{
		"Shrink": func(ctx context.Context, child *mpicx.Comm) error { return child.Shrink().Wait(ctx) },
		"Agree":  func(ctx context.Context, child *mpicx.Comm) error { return child.Agree(1).Wait(ctx) },
	}
	for kind := range raise {
		for call := range repairs {
			t.Run(kind+"/"+call, func(t *testing.T) {
				propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
					child, err := world.Split(min(world.Rank(), 1), 0).Get(ctx)
					if err != nil {
						return err
					}
					switch world.Rank() {
					case 3:
						_ = child.Guard(ctx, func(context.Context) error { return errors.New("of the child") })
						time.Sleep(time.Second)
						err = raise[kind](ctx, world)
					case 1:
						if err := child.Barrier().Wait(ctx); !corrupted(err) {
							return fmt.Errorf("Barrier of the child: %w", err)
						}
						time.Sleep(2 * time.Second)
						if err := world.Err(); err != nil { // this rank joins the world's round, which rank 0 has not
							return fmt.Errorf("the world's round is over: %w", err)
						}
						time.Sleep(2 * time.Second)
						err = repairs[call](ctx, child)
					case 0:
						time.Sleep(3 * time.Second)
						fallthrough
					case 2: // joins the child's round as well, and is told the world's
						err = world.Barrier().Wait(ctx)
					}
					if v, ok := err.(interface{ Of(*mpicx.Comm) bool }); !(ok && v.Of(world)) && world.Rank() < 3 {
						return fmt.Errorf("expected the world's error, got %w", err)
					}
					if kind == "propagated" {
						return world.Barrier().Wait(ctx)
					}
					return world.Shrink().Wait(ctx)
				})
			})
		}
	}
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
