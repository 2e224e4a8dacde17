package recovery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// The cost of Run without that of fn, if nothing fails.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{4, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				for range b.N {
					if err := recovery.Run(ctx, world, func(context.Context, *recovery.Attempt) error { return nil }); err != nil {
						return err
					}
				}
				return nil
			}, mpicx.WithRanks(n))
			if err != nil {
				b.Error(err)
			}
		})
	}
}
