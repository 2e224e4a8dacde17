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
