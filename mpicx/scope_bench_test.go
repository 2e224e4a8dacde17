package mpicx_test

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
)

// What scopes cost without an error, and Waits inside of them.
func BenchmarkScope(b *testing.B) {
	nothing := func(context.Context) error { return nil }
	for name, fn := range inOrder(map[string]func(ctx context.Context, world *mpicx.Comm, n int) error{
		"Try": func(ctx context.Context, world *mpicx.Comm, n int) error {
			for range n {
				if err := world.Try(ctx, nothing); err != nil {
					return err
				}
			}
			return nil
		},
		"TryAll": func(ctx context.Context, world *mpicx.Comm, n int) error {
			for range n {
				if err := world.TryAll(ctx, nothing); err != nil {
					return err
				}
			}
			return nil
		},
		"Wait": func(ctx context.Context, world *mpicx.Comm, n int) error {
			return world.Guard(ctx, func(ctx context.Context) error {
				return world.Try(ctx, func(ctx context.Context) error {
					for range n {
						if err := world.Barrier().Wait(ctx); err != nil {
							return err
						}
					}
					return nil
				})
			})
		},
	}) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			err := mpicx.Run(b.Context(), func(ctx context.Context, world *mpicx.Comm) error { return fn(ctx, world, b.N) }, mpicx.WithRanks(2))
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
