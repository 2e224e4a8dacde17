package checkpoint_test

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// H9: a program that returns without Close, and without a Wait for its Save, does not die of the
// operations that its store has in the background.
func TestReturnsWithoutClose(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for range 10 {
		mpicxtest.RunProcesses(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			st := opened(ctx, world, checkpoint.Partner(1))
			x := make([]float64, 1<<18)
			st.Protect("x", &x)
			st.Save(ctx, 1)
			return mpicx.Allreduce(world, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
		})
	}
}
