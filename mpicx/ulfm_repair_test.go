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

// H5: Agree ends with the same flag and error at all survivors; the error is
// suppressed once all have acknowledged, and not before.
func TestH5Agree(t *testing.T) {
	for _, victim := range []int{0, 1, 4} {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
				me := world.Rank()
				if me == victim {
					mpicxtest.Die(world)
				}
				if me == 2 {
					if err := world.Revoke(ctx); err != nil {
						return err
					}
				}
				_, err := world.Agree(^(1 << me)).Get(ctx)
				f, ok := errors.AsType[*mpicx.ProcFailedError](err)
				if !ok || !slices.Equal(f.Ranks, []int{victim}) || f.Flag|1<<victim != -1<<5|1<<victim {
					return fmt.Errorf("first: %w", err)
				}
				if me != 3 {
					world.AckFailed(len(world.Failed()))
				}
				if err := deadIs(world.Agree(1).Wait(ctx), victim); err != nil {
					return fmt.Errorf("one has not acknowledged: %w", err)
				}
				world.AckFailed(len(world.Failed()))
				flag, err := world.Agree(6 | me&1).Get(ctx)
				if err != nil || flag != 6 {
					return fmt.Errorf("all have acknowledged: %d %w", flag, err)
				}
				return nil
			})
		})
	}
}

// Ranks that call different operations in one place are all told.
func TestAgreeMeetsShrink(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		var err error
		if world.Rank() == 1 {
			err = world.Shrink().Wait(ctx)
		} else {
			err = world.Agree(1).Wait(ctx)
		}
		if m, ok := errors.AsType[*mpicx.MPIError](err); !ok || !strings.Contains(m.Text, "Agree and Shrink") {
			return fmt.Errorf("got %w", err)
		}
		return world.Agree(1).Wait(ctx) // and go on
	})
}

// H5: Shrink, again and again, until one is left.
func TestH5Shrink(t *testing.T) {
	propagating(t, 6, func(ctx context.Context, world *mpicx.Comm) error {
		comm := world
		for left := 6; ; left-- {
			if comm.Size() != left {
				return fmt.Errorf("%v has %d ranks, expected %d", comm, comm.Size(), left)
			}
			err := meet(ctx, comm, -1)
			if left == 1 {
				return comm.Close(ctx)
			}
			if comm.Rank() == left/2 {
				mpicxtest.Die(world)
			}
			if err == nil { // else others are ahead
				err = comm.Barrier().Wait(ctx)
			}
			if err := corruptedBy(err, left/2); err != nil {
				return err
			}
			if _, err := comm.Agree(1).Get(ctx); !procFailed(err) {
				return fmt.Errorf("Agree on a corrupted communicator: %w", err)
			}
			small, err := comm.Shrink().Get(ctx)
			if err != nil {
				return err
			}
			if err := comm.Close(ctx); err != nil {
				return err
			}
			comm = small
		}
	})
}

// Where nobody has died and nothing is revoked, Shrink makes a communicator of all (paper 001 makes this an
// error), and leaves the other as it is.
func TestShrinkOfAValidCommunicator(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		all, err := world.Shrink().Get(ctx)
		if err != nil || all.Size() != 3 || world.Revoked() {
			return fmt.Errorf("%v, revoked: %t: %w", all, world.Revoked(), err)
		}
		return errors.Join(all.Barrier().Wait(ctx), world.Barrier().Wait(ctx))
	})
}

// The rank that unwound may repair at once, with the others.
func TestUnwindAndShrink(t *testing.T) {
	propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		err := world.Guard(ctx, func(ctx context.Context) error {
			if me == 1 {
				return errors.New("unwound")
			}
			return world.Barrier().Wait(ctx)
		})
		if err == nil {
			return errors.New("Guard returned nil")
		}
		flag, err := world.Agree(^(1 << me)).Get(ctx)
		if err != nil || flag != -1<<4 {
			return fmt.Errorf("agreed on %b, %w", flag, err)
		}
		small, err := world.Shrink().Get(ctx)
		if err != nil || small.Size() != 4 {
			return fmt.Errorf("%v %w", small, err)
		}
		return exchange(ctx, small, 0)
	})
}
