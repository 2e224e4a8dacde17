package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// agreeingProgram is like propagating, but Agree decides whether all ranks are done. If Agree
// reports a corruption, it is called again.
func agreeingProgram(body func(context.Context, *mpicx.Comm) error) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		for comm := world; ; {
			err := comm.Guard(ctx, func(ctx context.Context) error { return body(ctx, comm) })
			flag := 1
			if err != nil {
				flag = 0
				_ = comm.Barrier().Wait(ctx)
			}
			var got int
			for {
				got, err = comm.Agree(flag).Get(ctx)
				if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok {
					break
				}
			}
			if err == nil && got == 1 {
				o.comm = comm.String()
				return nil
			}
			if comm, err = comm.Shrink().Get(ctx); err != nil {
				return fmt.Errorf("shrink: %w (%T)", err, err)
			}
			o.size[comm.String()] = comm.Size()
		}
	}
}

// TestExhaustiveAgree: that Agree reports an error, and which, is the same at all
// survivors, so they call the same operations next.
func TestExhaustiveAgree(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, name := range []string{"basic", "signalling", "any source"} {
		for n := 3; n <= 5; n++ {
			for r := range n {
				t.Run(fmt.Sprintf("%s/%d/%d", name, n, r), func(t *testing.T) {
					exhaust(t, n, r, true, agreeingProgram(bodies[name]))
				})
			}
		}
	}
}
