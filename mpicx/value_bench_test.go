package mpicx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
)

// BenchmarkOneNumber compares the ways to add one number of each rank.
func BenchmarkOneNumber(b *testing.B) {
	add := func(a, b int) int { return a + b }
	send, recv := []int{1}, []int{0}
	_, _ = send, recv
	for _, n := range []int{2, 8} {
		for name, op := range inOrder(map[string]func(ctx context.Context, c *mpicx.Comm){
			"Allreduce": func(ctx context.Context, c *mpicx.Comm) {
				var buf [2]int
				mpicx.Allreduce(c, buf[:1], buf[1:], mpicx.Sum).MustWait(ctx)
			},
			"AllreduceFunc": func(ctx context.Context, c *mpicx.Comm) {
				var buf [2]int
				mpicx.AllreduceFunc(c, buf[:1], buf[1:], add).MustWait(ctx)
			},
			"AllreduceValue": func(ctx context.Context, c *mpicx.Comm) { mpicx.AllreduceValue(c, 1, add).MustWait(ctx) },
		}) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				err := mpicx.Run(b.Context(), func(ctx context.Context, c *mpicx.Comm) error {
					for range b.N {
						op(ctx, c)
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
