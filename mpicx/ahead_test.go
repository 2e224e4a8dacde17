package mpicx_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A rank that only gives can't be far ahead of the root, which would have to keep what it gives.
func TestAheadOfTheRoot(t *testing.T) {
	fakeTime(t)
	var ahead atomic.Int64
	mpicxtest.Run(t, 2, func(ctx context.Context, c *mpicx.Comm) error {
		if c.Rank() == 0 {
			settle()
			if n := ahead.Load(); n > 100 {
				return fmt.Errorf("%d calls ahead of the root", n)
			}
		}
		for i := range 2000 {
			sum := []int{0}
			if err := mpicx.Reduce(c, []int{i}, sum, mpicx.Sum, 0).Wait(ctx); err != nil {
				return err
			}
			if c.Rank() == 1 {
				ahead.Add(1)
			} else if sum[0] != 2*i {
				return fmt.Errorf("round %d: the sum is %d", i, sum[0])
			}
		}
		return nil
	})
}
