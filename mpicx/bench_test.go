package mpicx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// What scopes cost without an error, and Waits inside of them.
func BenchmarkScope(b *testing.B) {
	for name, scope := range inOrder(map[string]scope{"Try": (*mpicx.Comm).Try, "TryAll": (*mpicx.Comm).TryAll}) {
		b.Run(name, func(b *testing.B) {
			benchmarkRanks(b, 2, func(ctx context.Context, world *mpicx.Comm) error {
				for range b.N {
					mpicx.Throw(scope(world, ctx, succeeds))
				}
				return nil
			})
		})
	}
	b.Run("Wait", func(b *testing.B) {
		benchmarkRanks(b, 2, func(ctx context.Context, world *mpicx.Comm) error {
			waits := func(ctx context.Context) error {
				for range b.N {
					world.Barrier().MustWait(ctx)
				}
				return nil
			}
			return world.Guard(ctx, func(ctx context.Context) error { return world.Try(ctx, waits) })
		})
	})
}

// benchmarkRanks measures a program of n ranks, each of which does its work b.N times.
func benchmarkRanks(b *testing.B, n int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	b.ReportAllocs()
	require.NoError(b, mpicx.Run(b.Context(), fn, mpicx.WithRanks(n)))
}
