package mpicxtest_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// agreeingOnFailed repeats body, each time on the survivors, until AgreeFailed finds no death. Then
// body has succeeded at all ranks: a rank at which it failed knew of a death, or was told of an
// error by a rank that did.
func agreeingOnFailed(h mpicx.Errhandler, do body) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(h)
		for comm := world; ; {
			if err := caught(func() { do(ctx, comm) }); err != nil {
				if !expected(err) {
					return fmt.Errorf("body: %w (%T)", err, err)
				}
				_ = comm.Revoke(ctx) // or all have been told already
			}
			dead, err := despiteCorruption(ctx, comm.AgreeFailed)
			if err != nil {
				return fmt.Errorf("AgreeFailed: %w (%T)", err, err)
			}
			o.note("dead", comm, dead)
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
			o.note("size", comm, comm.Size())
			if comm.Size() > before-len(dead) {
				return fmt.Errorf("%d ranks shrunk to %d, and %v are dead", before, comm.Size(), dead)
			}
		}
	}
}

// despiteCorruption repairs again after it was told of the corruption that a rank which has met
// a death raises under ErrorsPropagate.
func despiteCorruption[T any](ctx context.Context, repair func() *future.Future[T]) (T, error) {
	v, err := repair().Get(ctx)
	if isCorrupted(err) {
		return repair().Get(ctx)
	}
	return v, err
}

// Whichever rank dies, and whenever, all survivors get the same set from AgreeFailed, so they call
// the same operations next.
func TestExhaustiveAgreeFailed(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for h, way := range []string{mpicx.ErrorsPropagate: "propagating", mpicx.ErrorsReturn: "returning"} {
		for _, name := range []string{"basic", "any source"} {
			exhaustAll(t, way+"/"+name, 2, 4, true, agreeingOnFailed(mpicx.Errhandler(h), bodies[name]))
		}
	}
}

// Whichever rank dies in whichever step of Fprintf, it ends, and each living rank's line is there.
func TestDeathInFprintf(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	deaths := 0
	for n := 2; n <= 4; n++ {
		for i := range 2 * n * 2 * 3 {
			h, r := []mpicx.Errhandler{mpicx.ErrorsPropagate, mpicx.ErrorsReturn}[i%2], i/2%n
			call, step := 1+i/2/n%2, 1+i/4/n // the second call tells that rank 0 has written
			var out bytes.Buffer
			plan := fmt.Sprintf("kill %d in Fprintf step %d call %d", r, step, call)
			killed := mpicxtest.RunFaults(t, n, plan, func(ctx context.Context, world *mpicx.Comm) error {
				world.SetErrhandler(h)
				if err := world.Fprintf(ctx, &out, "alive"); err != nil && !expected(err) {
					return err
				}
				return nil
			})
			deaths += len(killed)
			for living := range n {
				if !slices.Contains(killed, living) {
					require.Contains(t, out.String(), fmt.Sprintf("[%d] alive\n", living), plan)
				}
			}
		}
	}
	require.Greater(t, deaths, 30)
}
