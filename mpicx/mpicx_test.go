package mpicx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func TestSmoke(t *testing.T) {
	for n := 1; n < 12; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				sum := []int{0}
				if err := mpicx.Allreduce(world, []int{world.Rank()}, sum, mpicx.Sum).Wait(ctx); err != nil || sum[0] != n*(n-1)/2 {
					return fmt.Errorf("%d %v", sum[0], err)
				}
				return world.Barrier().Wait(ctx)
			})
		})
	}
}
