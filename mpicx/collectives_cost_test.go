package mpicx_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// buffers are those of one rank, with a part or one for each rank.
type buffers struct {
	one, result, all, spread []float64
	counts                   []int
}

func newBuffers(n, length int) *buffers {
	buffer := func(n int) []float64 { return make([]float64, n, max(n, 64)) } // tiny ones share memory
	return &buffers{buffer(length), buffer(length), buffer(n * length), buffer(n * length), slices.Repeat([]int{length}, n)}
}

var collectives = []struct {
	name  string
	start func(c *mpicx.Comm, b *buffers, root int) future.Waiter
}{
	{"Barrier", func(c *mpicx.Comm, _ *buffers, _ int) future.Waiter { return c.Barrier() }},
	{"Bcast", func(c *mpicx.Comm, b *buffers, root int) future.Waiter { return mpicx.Bcast(c, b.one, root) }},
	{"Reduce", func(c *mpicx.Comm, b *buffers, root int) future.Waiter {
		return mpicx.Reduce(c, b.one, b.result, mpicx.Sum, root)
	}},
	{"Allreduce", func(c *mpicx.Comm, b *buffers, _ int) future.Waiter {
		return mpicx.Allreduce(c, b.one, b.result, mpicx.Sum)
	}},
	{"Gather", func(c *mpicx.Comm, b *buffers, root int) future.Waiter { return mpicx.Gather(c, b.one, b.all, root) }},
	{"Scatter", func(c *mpicx.Comm, b *buffers, root int) future.Waiter { return mpicx.Scatter(c, b.all, b.one, root) }},
	{"Allgather", func(c *mpicx.Comm, b *buffers, _ int) future.Waiter { return mpicx.Allgather(c, b.one, b.all) }},
	{"Allgatherv", func(c *mpicx.Comm, b *buffers, _ int) future.Waiter {
		return mpicx.Allgatherv(c, b.one, b.all, b.counts)
	}},
	{"Alltoall", func(c *mpicx.Comm, b *buffers, _ int) future.Waiter { return mpicx.Alltoall(c, b.all, b.spread) }},
	{"ReduceScatter", func(c *mpicx.Comm, b *buffers, _ int) future.Waiter {
		return mpicx.ReduceScatter(c, b.all, b.result, b.counts, mpicx.Sum)
	}},
	{"Scan", func(c *mpicx.Comm, b *buffers, _ int) future.Waiter { return mpicx.Scan(c, b.one, b.result, mpicx.Sum) }},
}

// What a short operation needs has served an earlier one, at every rank, but for futures: 16 of
// them are two allocations.
func TestShortCollectivesAllocateNothing(t *testing.T) {
	oneProcess(t)
	if buildtags.Race {
		t.Skip("under the race detector pools lose what they have")
	}
	const times, calls = 50, 8
	for n, op := range product([]int{1, 2, 3, 5}, collectives) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			b := newBuffers(n, 1)
			call := func() {
				for i := range calls {
					mpicx.Throw(op.start(c, b, i%n).Wait(ctx))
					c.Barrier().MustWait(ctx) // so that none is ahead, whose messages would have to be kept
				}
			}
			if c.Rank() > 0 {
				for range times + 1 { // AllocsPerRun makes one more
					call()
				}
				return nil
			}
			futures := 2 * n * calls
			require.Less(t, testing.AllocsPerRun(times, call), float64(futures/8+calls), "%s of %d ranks", op.name, n)
			return nil
		})
	}
}

// What serves again has no buffer of the program, however long no other operation comes.
func TestCollectivesKeepNoBuffer(t *testing.T) {
	oneProcess(t)
	for n, op := range product([]int{1, 2, 5}, collectives) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			var buffers []weak.Pointer[float64]
			func() {
				b := newBuffers(n, 1)
				for _, buf := range [][]float64{b.one, b.result, b.all, b.spread} {
					buffers = append(buffers, weak.Make(&buf[0]))
				}
				mpicx.Throw(op.start(c, b, n-1).Wait(ctx))
			}()
			runtime.GC()
			for i, p := range buffers {
				require.Nil(t, p.Value(), "buffer %d of %s of rank %d of %d", i, op.name, c.Rank(), n)
			}
			return nil
		})
	}
}

// BenchmarkCollectives is one call of every rank. The first and the last rank are the root in turn.
func BenchmarkCollectives(b *testing.B) {
	for n, op := range product([]int{2, 8, 64}, collectives) {
		b.Run(fmt.Sprintf("%s/ranks=%d", op.name, n), func(b *testing.B) {
			benchmarkRanks(b, n, func(ctx context.Context, c *mpicx.Comm) error {
				buffers := newBuffers(n, 1)
				for i := range b.N {
					mpicx.Throw(op.start(c, buffers, i%2*(n-1)).Wait(ctx))
				}
				return nil
			})
		})
	}
}
