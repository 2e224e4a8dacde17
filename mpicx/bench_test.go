package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
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
						world.Barrier().MustWait(ctx)
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

// BenchmarkNeighbors compares the exchange with the four neighbours of a periodic grid with the
// same by Send and Recv, in turn: as many of the one, then as many of the other, and so on. It
// reports the ratio of the medians; a Halo's is to packing, Send and Recv by hand.
func BenchmarkNeighbors(b *testing.B) {
	for dims, length := range product([][]int{{2, 2}, {4, 4}}, []int{1, 64, 1024}) {
		b.Run(fmt.Sprintf("%dx%d/%dB", dims[0], dims[1], 8*length), func(b *testing.B) { compareNeighbors(b, dims, length) })
	}
}

func compareNeighbors(b *testing.B, dims []int, length int) {
	const times, turns = 20, 41
	var took [4][]time.Duration
	err := mpicx.Run(b.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		g := mpicx.CartCreate(world, dims, []bool{true, true}).MustGet(ctx)
		ranks := make([]int, 4)
		for dim := range 2 {
			ranks[2*dim], ranks[2*dim+1] = g.Shift(dim, 1)
		}
		send, recv, counts := make([]int, 4*length), make([]int, 4*length), slices.Repeat([]int{length}, 4)
		h := mpicx.NewHalo[int](g, []int{length, length}, 1, false).MustGet(ctx)
		block := make([]int, h.Len())
		stride := length + 2
		column := func(at int, buf []int, pack bool) {
			for i := range buf {
				if pack {
					buf[i] = block[at+i*stride]
				} else {
					block[at+i*stride] = buf[i]
				}
			}
		}
		byHand := func(send, recv func(k int) []int) {
			waits := make([]future.Waiter, 0, 8)
			for k, r := range ranks {
				waits = append(waits, mpicx.Recv(g.Comm, recv(k), r, k^1))
			}
			for k, r := range ranks {
				waits = append(waits, mpicx.Send(g.Comm, send(k), r, k))
			}
			mpicx.Throw(future.WaitAll(ctx, waits...))
		}
		part := func(buf []int) func(k int) []int { return func(k int) []int { return buf[k*length:][:length] } }
		ways := []func(){
			func() { mpicx.NeighborAlltoallv(g, send, counts, recv, counts).MustWait(ctx) },
			func() { byHand(part(send), part(recv)) },
			func() { h.Start(block).MustWait(ctx) },
			func() {
				column(stride+1, part(send)(2), true)
				column(2*stride-2, part(send)(3), true)
				row := func(first int) func(k int) []int {
					return func(k int) []int { return block[[]int{first, length + 1 - first}[k]*stride+1:][:length] }
				}
				byHand(func(k int) []int {
					if k < 2 {
						return row(1)(k)
					}
					return part(send)(k)
				}, func(k int) []int {
					if k < 2 {
						return row(0)(k)
					}
					return part(recv)(k)
				})
				column(stride, part(recv)(2), false)
				column(2*stride-1, part(recv)(3), false)
			},
		}
		for range b.N * turns {
			for w, way := range ways {
				world.Barrier().MustWait(ctx)
				begin := time.Now()
				for range times {
					way()
				}
				world.Barrier().MustWait(ctx)
				if world.Rank() == 0 {
					took[w] = append(took[w], time.Since(begin)/times)
				}
			}
		}
		return nil
	}, mpicx.WithRanks(dims[0]*dims[1]))
	if err != nil {
		b.Fatal(err)
	}
	median := func(w int) float64 {
		slices.Sort(took[w])
		return float64(took[w][len(took[w])/2].Nanoseconds())
	}
	b.ReportMetric(median(0), "ns/alltoallv")
	b.ReportMetric(median(0)/median(1), "alltoallv/messages")
	b.ReportMetric(median(2), "ns/halo")
	b.ReportMetric(median(2)/median(3), "halo/messages")
	b.ReportMetric(0, "ns/op")
}
