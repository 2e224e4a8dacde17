package mpicx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// BenchmarkCollectives is one call of every rank, on one float64 of each. The first and the last
// rank are the root in turn.
func BenchmarkCollectives(b *testing.B) {
	for _, n := range []int{2, 8, 64} {
		for _, op := range []struct {
			name  string
			start func(c *mpicx.Comm, root int, one, result, all, spread []float64, counts []int) future.Waiter
		}{
			{"Barrier", func(c *mpicx.Comm, _ int, _, _, _, _ []float64, _ []int) future.Waiter { return c.Barrier() }},
			{"Bcast", func(c *mpicx.Comm, root int, one, _, _, _ []float64, _ []int) future.Waiter {
				return mpicx.Bcast(c, one, root)
			}},
			{"Reduce", func(c *mpicx.Comm, root int, one, result, _, _ []float64, _ []int) future.Waiter {
				return mpicx.Reduce(c, one, result, mpicx.Sum, root)
			}},
			{"Allreduce", func(c *mpicx.Comm, _ int, one, result, _, _ []float64, _ []int) future.Waiter {
				return mpicx.Allreduce(c, one, result, mpicx.Sum)
			}},
			{"Gather", func(c *mpicx.Comm, root int, one, _, all, _ []float64, _ []int) future.Waiter {
				return mpicx.Gather(c, one, all, root)
			}},
			{"Scatter", func(c *mpicx.Comm, root int, one, _, all, _ []float64, _ []int) future.Waiter {
				return mpicx.Scatter(c, all, one, root)
			}},
			{"Allgather", func(c *mpicx.Comm, _ int, one, _, all, _ []float64, _ []int) future.Waiter {
				return mpicx.Allgather(c, one, all)
			}},
			{"Alltoall", func(c *mpicx.Comm, _ int, _, _, all, spread []float64, _ []int) future.Waiter {
				return mpicx.Alltoall(c, all, spread)
			}},
			{"ReduceScatter", func(c *mpicx.Comm, _ int, _, result, all, _ []float64, counts []int) future.Waiter {
				return mpicx.ReduceScatter(c, all, result, counts, mpicx.Sum)
			}},
			{"Scan", func(c *mpicx.Comm, _ int, one, result, _, _ []float64, _ []int) future.Waiter {
				return mpicx.Scan(c, one, result, mpicx.Sum)
			}},
		} {
			b.Run(fmt.Sprintf("%s/ranks=%d", op.name, n), func(b *testing.B) {
				b.ReportAllocs()
				err := mpicx.Run(context.Background(), func(ctx context.Context, c *mpicx.Comm) error {
					one, result, all, spread, counts := make([]float64, 1), make([]float64, 1), make([]float64, n), make([]float64, n), make([]int, n)
					for i := range counts {
						counts[i] = 1
					}
					for i := range b.N {
						if err := op.start(c, i%2*(n-1), one, result, all, spread, counts).Wait(ctx); err != nil {
							return err
						}
					}
					return nil
				}, mpicx.WithRanks(n))
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
