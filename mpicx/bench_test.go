package mpicx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// BenchmarkCall measures collective calls of 8 bytes at two goroutine ranks, and the message by
// Send and Recv. One goroutine makes the calls of both ranks, so no goroutine waits for another.
func BenchmarkCall(b *testing.B) {
	one, sum, both := []float64{1}, []float64{0}, []float64{0, 0}
	for _, test := range []struct {
		name string
		call func(c *mpicx.Comm) future.Waiter
	}{
		{"SendRecv", func(c *mpicx.Comm) future.Waiter {
			if c.Rank() == 0 {
				return mpicx.Recv(c, sum, 1, 0)
			}
			return mpicx.Send(c, one, 0, 0)
		}},
		{"Bcast", func(c *mpicx.Comm) future.Waiter { return mpicx.Bcast(c, one, 1) }},
		{"Gather", func(c *mpicx.Comm) future.Waiter { return mpicx.Gather(c, one, both, 0) }},
		{"Reduce", func(c *mpicx.Comm) future.Waiter { return mpicx.Reduce(c, one, sum, mpicx.Sum, 0) }},
	} {
		b.Run(test.name, func(b *testing.B) {
			other, done := make(chan *mpicx.Comm), make(chan struct{})
			require.NoError(b, mpicx.Run(b.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 1 {
					other <- world
					<-done
					return nil
				}
				defer close(done)
				c := <-other
				for b.Loop() {
					received := test.call(world)
					mpicx.Throw(test.call(c).Wait(ctx))
					mpicx.Throw(received.Wait(ctx))
				}
				return nil
			}, mpicx.WithRanks(2)))
		})
	}
}

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
