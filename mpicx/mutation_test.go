package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A death that was met on the parent corrupts a child with the dead among its ranks for
// good, though no operation of the child met it: each ends with the same error (C4), one
// between living ranks too. A child without them has the error once, and works.
func TestChildInheritsTheDead(t *testing.T) {
	oneProcess(t)
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel sees no process die")
	}
	fakeTime(t)
	const n, dead = 5, 4
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		with := world.Dup().MustGet(ctx)
		color := 0
		if world.Rank() == dead {
			color = 1
		}
		without := world.Split(color, 0).MustGet(ctx)
		if world.Rank() == dead {
			settle() // till all have both
			mpicxtest.Die(world)
		}
		first := world.Barrier().Wait(ctx)
		if c, is := first.(*mpicx.CommCorruptedError); !is || !slices.Equal(c.Dead, []int{dead}) {
			return fmt.Errorf("got %v, expected that rank %d has died", first, dead)
		}
		for range 3 {
			peer := world.Rank() ^ 1
			for _, err := range []error{
				mpicx.Send(with, []int{1}, peer, 1).Wait(ctx),
				mpicx.Recv(with, []int{0}, peer, 1).Wait(ctx),
				with.Barrier().Wait(ctx),
				with.Err(),
			} {
				if err != first {
					return fmt.Errorf("got %v, expected the error of before", err)
				}
			}
		}
		if err := without.Barrier().Wait(ctx); err != first {
			return fmt.Errorf("got %v, expected the error of before", err)
		}
		return exchange(ctx, without, 0)
	})
}

// P8, D1: the context of a Try ends by an error of its communicator, or of one from which that is derived, however
// far, at a rank that computes: when the error comes, at the beginning if it came before, and at the end of a Guard
// inside if it came within that.
func TestErrorEndsTheContextOfTry(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	for name, test := range map[string]struct {
		depth  int  // of the Try's communicator
		before bool // the Try begins after the error has come
		guard  bool // the error comes while a Guard inside is running
	}{
		"of the parent": {1, false, false}, "of its parent": {2, false, false}, "of the parent of that": {3, false, false},
		"before": {0, true, false}, "of the parent, before": {1, true, false}, "within a Guard": {0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				c := world
				for range test.depth {
					c = c.Dup().MustGet(ctx)
				}
				if world.Rank() == 0 {
					settle() // until the others have what they need
					return propagated(world.SignalError(ctx, 7), 7)
				}
				if test.before { // they compute while the error comes
					settle()
					settle()
				}
				err := c.Try(ctx, func(ctx context.Context) error {
					if test.guard {
						mpicx.Throw(c.Guard(ctx, func(context.Context) error { settle(); settle(); return nil }))
					}
					<-ctx.Done() // computes until somebody tells it
					return ctx.Err()
				})
				return propagated(err, 7)
			})
		})
	}
}
