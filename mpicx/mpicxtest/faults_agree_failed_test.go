package mpicxtest_test

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

// agreeingOnFailed repeats body, each time on the survivors, until AgreeFailed finds no death. Then
// body has succeeded at all ranks: a rank at which it failed knew of a death, or was told of an
// error by a rank that did.
func agreeingOnFailed(h mpicx.Errhandler, body func(context.Context, *mpicx.Comm) error) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(h)
		for comm := world; ; {
			if err := body(ctx, comm); err != nil {
				if !expected(err) {
					return fmt.Errorf("body: %w (%T)", err, err)
				}
				_ = comm.Revoke(ctx) // or all have been told already
			}
			dead, err := despiteCorruption(ctx, comm.AgreeFailed)
			if err != nil {
				return fmt.Errorf("AgreeFailed: %w (%T)", err, err)
			}
			o.dead[comm.String()] = fmt.Sprint(dead)
			known := comm.Failed()
			for _, r := range dead {
				if r == comm.Rank() || !slices.Contains(known, r) {
					return fmt.Errorf("rank %d of %v is dead, and Failed says %v", r, comm, known)
				}
			}
			if len(dead) == 0 {
				o.comm = comm.String()
				return nil
			}
			before := comm.Size()
			if comm, err = despiteCorruption(ctx, comm.Shrink); err != nil {
				return fmt.Errorf("shrink: %w (%T)", err, err)
			}
			if o.size[comm.String()] = comm.Size(); comm.Size() > before-len(dead) {
				return fmt.Errorf("%d ranks shrunk to %d, and %v are dead", before, comm.Size(), dead)
			}
		}
	}
}

// despiteCorruption repairs again after it was told of the corruption that a rank which has met
// a death raises under ErrorsPropagate.
func despiteCorruption[T any](ctx context.Context, repair func() *future.Future[T]) (T, error) {
	v, err := repair().Get(ctx)
	if _, told := errors.AsType[*mpicx.CommCorruptedError](err); told {
		return repair().Get(ctx)
	}
	return v, err
}

// TestExhaustiveAgreeFailed: whoever dies whenever, all survivors get the same set from it,
// so they call the same operations next.
func TestExhaustiveAgreeFailed(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for h, way := range []string{mpicx.ErrorsPropagate: "propagating", mpicx.ErrorsReturn: "returning"} {
		for _, name := range []string{"basic", "any source"} {
			for n := 2; n <= 4; n++ {
				for r := range n {
					t.Run(fmt.Sprintf("%s/%s/%d/%d", way, name, n, r), func(t *testing.T) {
						exhaust(t, n, r, true, agreeingOnFailed(mpicx.Errhandler(h), bodies[name]))
					})
				}
			}
		}
	}
}
