package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// mortal runs fn at ranks that return the ULFM errors.
//
// Under mpirun each test of the files ulfm_*_test.go has a job of its own, because
// processes die in it; a test elsewhere begins with oneProcess.
func mortal(t *testing.T, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel cannot see a process die")
	}
	mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		return fn(ctx, world)
	})
}

// propagating is mortal with ErrorsPropagate.
func propagating(t *testing.T, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	mortal(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsPropagate)
		return fn(ctx, world)
	})
}

// deadIs checks that err is a *ProcFailedError of these ranks.
func deadIs(err error, ranks ...int) error {
	if f, ok := errors.AsType[*mpicx.ProcFailedError](err); !ok || !slices.Equal(f.Ranks, ranks) {
		return fmt.Errorf("got %v, expected that ranks %v have died", err, ranks)
	}
	return nil
}

// corruptedBy checks that err is a *CommCorruptedError with these dead.
func corruptedBy(err error, ranks ...int) error {
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || !slices.Equal(c.Dead, ranks) {
		return fmt.Errorf("got %v, expected a corruption with %v dead", err, ranks)
	}
	return nil
}

// allowed checks err against what it may be.
func allowed(err error, want func(error) bool) error {
	if !want(err) {
		return fmt.Errorf("unexpected %w", err)
	}
	return nil
}

func procFailed(err error) bool {
	_, ok := errors.AsType[*mpicx.ProcFailedError](err)
	return ok
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// deadIsOrNil waits until this rank knows that rank 1 has died.
func deadIsOrNil(world *mpicx.Comm, ctx context.Context) error {
	return deadIs(mpicx.Recv(world, []int{0}, 1, 9).Wait(ctx), 1)
}

// shrinks has Shrink make a communicator of so many ranks, which works.
func shrinks(ctx context.Context, world *mpicx.Comm, size int) error {
	small, err := world.Shrink().Get(ctx)
	if err != nil || small.Size() != size {
		return fmt.Errorf("%v %w", small, err)
	}
	return exchange(ctx, small, 0)
}

// meet lets no living rank go on before all have come, by messages between each
// two.
func meet(ctx context.Context, c *mpicx.Comm, dead int) error {
	var all []future.Waiter
	for r := range c.Size() {
		if r != dead {
			all = append(all, mpicx.Ssend(c, []int{0}, r, 1000), mpicx.Recv(c, []int{0}, r, 1000))
		}
	}
	return future.WaitAll(ctx, all...)
}

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
			mpicx.Throw(deadIsOrNil(world, ctx))
			mpicx.Throw(world.Revoke(ctx))
		}
		for range 2 {
			dead, err := world.AgreeFailed().Get(ctx)
			if err != nil || !slices.Equal(dead, []int{1}) || !slices.Equal(world.Failed(), dead) {
				return fmt.Errorf("rank 1 is dead: %v, Failed says %v, %w", dead, world.Failed(), err)
			}
			dead[0] = -1 // nobody else's
		}
		world.AckFailed(1)
		mpicx.Throw(explain(world.Agree(1).Wait(ctx), "all have acknowledged"))
		return world.AgreeFailed().Wait(ctx)
	})
}

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
					mpicx.Throw(world.Revoke(ctx))
				}
				_, err := world.Agree(^(1 << me)).Get(ctx)
				f, ok := errors.AsType[*mpicx.ProcFailedError](err)
				if !ok || !slices.Equal(f.Ranks, []int{victim}) || f.Flag|1<<victim != -1<<5|1<<victim {
					return fmt.Errorf("first: %w", err)
				}
				if me != 3 {
					world.AckFailed(len(world.Failed()))
				}
				mpicx.Throw(explain(deadIs(world.Agree(1).Wait(ctx), victim), "one has not acknowledged"))
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
			mpicx.Throw(corruptedBy(err, left/2))
			if _, err := comm.Agree(1).Get(ctx); !procFailed(err) {
				return fmt.Errorf("Agree on a corrupted communicator: %w", err)
			}
			small := comm.Shrink().MustGet(ctx)
			mpicx.Throw(comm.Close(ctx))
			comm = small
		}
	})
}

// The rank that unwound may repair at once, with the others.
func TestUnwindAndShrink(t *testing.T) {
	propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Guard(ctx, fails(world, 1, errors.New("unwound"))) == nil {
			return errors.New("Guard returned nil")
		}
		flag, err := world.Agree(^(1 << world.Rank())).Get(ctx)
		if err != nil || flag != -1<<4 {
			return fmt.Errorf("agreed on %b, %w", flag, err)
		}
		return shrinks(ctx, world, 4)
	})
}

// Where nobody has died and nothing is revoked, Shrink makes a communicator of all (paper 001 makes
// this an error), and leaves the other as it is.
func TestShrinkOfAValidCommunicator(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		all, err := world.Shrink().Get(ctx)
		if err != nil || all.Size() != 3 || world.Revoked() {
			return fmt.Errorf("%v, revoked: %t: %w", all, world.Revoked(), err)
		}
		return errors.Join(all.Barrier().Wait(ctx), world.Barrier().Wait(ctx))
	})
}
