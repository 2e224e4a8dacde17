package checkpoint_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// The same with processes, of which one gets a SIGKILL.
func TestProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, moment := range []string{"at operation 5", "at operation 20", "at operation 40", "in Barrier step 1"} {
		t.Run(moment, func(t *testing.T) {
			processes := mpicxtest.RunProcessFaults(t, 4, fmt.Sprintf("kill 1 %s", moment), func(ctx context.Context, world *mpicx.Comm) error {
				x, err := surviving(ctx, t, world, checkpoint.Partner(1))
				if err == nil {
					mpicxtest.Hand(x)
				}
				return err
			}, mpicx.WithSpares(1))
			var all [][]float64
			for _, p := range processes {
				all = append(all, mpicxtest.ValuesOf[[]float64](t, p)...)
			}
			require.ElementsMatch(t, [][]float64{value(0, 3), value(1, 3), value(2, 3)}, all)
			require.True(t, processes[1].Killed)
		})
	}
}

// H9: a program that returns without Close, and without a Wait for its Save, does not die of what its store
// does in the background.
func TestReturnsWithoutClose(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for range 10 {
		mpicxtest.RunProcesses(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			st, err := checkpoint.Open(ctx, world, checkpoint.Partner(1))
			if err != nil {
				return err
			}
			x := make([]float64, 1<<18)
			st.Protect("x", &x)
			st.Save(ctx, 1)
			return mpicx.Allreduce(world, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
		})
	}
}
