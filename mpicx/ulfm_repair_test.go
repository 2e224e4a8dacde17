package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

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
	mpicxtest.NeedsULFM(t)
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

func procFailed(err error) bool { return hasType[*mpicx.ProcFailedError](err) }

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// shrinks has Shrink make a communicator of size ranks, which works.
func shrinks(ctx context.Context, world *mpicx.Comm, size int) error {
	small, err := world.Shrink().Get(ctx)
	if err != nil || small.Size() != size {
		return fmt.Errorf("%v %w", small, err)
	}
	return exchange(ctx, small, 0)
}

// meet lets no living rank continue before all have come, by messages between each two.
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
		require.Empty(t, world.AgreeFailed().MustGet(ctx))
		switch world.Rank() {
		case 1:
			mpicxtest.Die(world)
		case 2: // it alone waits until it knows
			mpicx.Throw(deadIs(mpicx.Recv(world, []int{0}, 1, 9).Wait(ctx), 1))
			mpicx.Throw(world.Revoke(ctx))
		}
		for range 2 {
			dead := world.AgreeFailed().MustGet(ctx)
			require.Equal(t, []int{1}, dead)
			require.Equal(t, dead, world.Failed())
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
		t.Run(fmt.Sprint(victim), func(t *testing.T) { agreeWithout(t, victim) })
	}
}

func agreeWithout(t *testing.T, victim int) {
	mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		switch me {
		case victim:
			mpicxtest.Die(world)
		case 2:
			mpicx.Throw(world.Revoke(ctx))
		}
		err := world.Agree(^(1 << me)).Wait(ctx)
		mpicx.Throw(deadIs(err, victim))
		f, _ := errors.AsType[*mpicx.ProcFailedError](err)
		require.Equal(t, -1<<5|1<<victim, f.Flag|1<<victim)
		if me != 3 {
			world.AckFailed(len(world.Failed()))
		}
		mpicx.Throw(explain(deadIs(world.Agree(1).Wait(ctx), victim), "one has not acknowledged"))
		world.AckFailed(len(world.Failed()))
		require.Equal(t, 6, world.Agree(6|me&1).MustGet(ctx), "all have acknowledged")
		return nil
	})
}

// H5: Shrink, again and again, until one is left.
func TestH5Shrink(t *testing.T) {
	propagating(t, 6, func(ctx context.Context, world *mpicx.Comm) error {
		comm := world
		for left := 6; ; left-- {
			require.Equal(t, left, comm.Size())
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
			mpicx.Throw(isA[*mpicx.ProcFailedError](comm.Agree(1).Wait(ctx))) // though it is corrupted
			small := comm.Shrink().MustGet(ctx)
			mpicx.Throw(comm.Close(ctx))
			comm = small
		}
	})
}

// The rank that unwound may repair at once, with the others.
func TestUnwindAndShrink(t *testing.T) {
	propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		require.Error(t, world.Guard(ctx, fails(world, 1, errors.New("unwound"))))
		require.Equal(t, -1<<4, world.Agree(^(1 << world.Rank())).MustGet(ctx))
		return shrinks(ctx, world, 4)
	})
}

// Where nobody has died and nothing is revoked, Shrink makes a communicator of all (paper 001 makes
// this an error), and leaves the other as it is.
func TestShrinkOfAValidCommunicator(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		mpicx.Throw(shrinks(ctx, world, 3))
		require.False(t, world.Revoked())
		return world.Barrier().Wait(ctx)
	})
}
