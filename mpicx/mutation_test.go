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
		without, err := world.Split(color, 0).Get(ctx)
		if err != nil {
			return err
		}
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

// An error of a communicator ends the contexts of Try on those derived from it, however
// far, at ranks that compute (P8, D1).
func TestParentsErrorEndsChildsContext(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	for _, depth := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				c := world
				for range depth {
					var err error
					if c, err = c.Dup().Get(ctx); err != nil {
						return err
					}
				}
				if world.Rank() == 0 {
					settle()
					return propagated(world.SignalError(ctx, 7), 7)
				}
				err := c.Try(ctx, func(ctx context.Context) error {
					<-ctx.Done() // computes until somebody tells it
					return ctx.Err()
				})
				return propagated(err, 7)
			})
		})
	}
}

// The context of a Try has ended at its beginning if an error came before that is not
// reported: of its communicator, or of one that it derives from (P8).
func TestErrorBeforeTryEndsItsContext(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	for _, derived := range []bool{false, true} {
		t.Run(fmt.Sprint(derived), func(t *testing.T) {
			mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				c := world
				if derived {
					var err error
					if c, err = world.Dup().Get(ctx); err != nil {
						return err
					}
				}
				settle() // till all have it
				if world.Rank() == 0 {
					return propagated(world.SignalError(ctx, 7), 7)
				}
				settle() // computes while the error comes
				err := c.Try(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				})
				return propagated(err, 7)
			})
		})
	}
}

// An error that comes within a Guard inside of a Try is the Try's: its context ends when
// the Guard has.
func TestErrorWithinGuardEndsTheTryAround(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			settle()
			return propagated(world.SignalError(ctx, 7), 7)
		}
		err := world.Try(ctx, func(ctx context.Context) error {
			err := world.Guard(ctx, func(ctx context.Context) error {
				settle()
				settle()
				return nil
			})
			if err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
		return propagated(err, 7)
	})
}
