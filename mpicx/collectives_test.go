package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// sizes of communicators, and lengths of a rank's part: nothing, little, and more
// than what trees carry.
var (
	sizes   = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17}
	lengths = []int{0, 1, 5, 1500}
)

// want compares what an operation gave with what it should.
func want[T comparable](what string, got []T, value func(i int) T) error {
	for i, v := range got {
		if w := value(i); v != w && (v == v || w == w) {
			return fmt.Errorf("%s: element %d of %d is %v, expected %v", what, i, len(got), v, w)
		}
	}
	return nil
}

// each runs fn for every size and length.
func each(t *testing.T, fn func(ctx context.Context, c *mpicx.Comm, length int) error) {
	for _, n := range fitting(sizes...) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
				for _, length := range lengths {
					mpicx.Throw(explain(fn(ctx, c, length), "length %d", length))
				}
				return nil
			})
		})
	}
}

// entry is what rank r gives as its i-th.
func entry(r, i int) int { return 1000*r + i }

func fill(length, r int) []int {
	b := make([]int, length)
	for i := range b {
		b[i] = entry(r, i)
	}
	return b
}

func TestBcastGatherScatter(t *testing.T) {
	each(t, func(ctx context.Context, c *mpicx.Comm, length int) error {
		n, me := c.Size(), c.Rank()
		for root := range n {
			buf := make([]int, length)
			if me == root {
				buf = fill(length, root)
			}
			mpicx.Bcast(c, buf, root).MustWait(ctx)
			all := make([]int, n*length)
			var recv, send []int
			if me == root {
				recv, send = all, make([]int, n*length)
				for r := range n {
					copy(send[r*length:], fill(length, r+root))
				}
			}
			part := make([]int, length)
			mpicx.Gather(c, fill(length, me), recv, root).MustWait(ctx)
			mpicx.Scatter(c, send, part, root).MustWait(ctx)

			counts, sum := make([]int, n), 0 // r has r times as many
			for r := range counts {
				counts[r] = r * min(length, 9)
				sum += counts[r]
			}
			first := func(r int) int { return r * (r - 1) / 2 * min(length, 9) }
			var vrecv []int
			var vcounts []int
			if me == root {
				vrecv, vcounts = make([]int, sum), counts
			}
			mpicx.Gatherv(c, fill(counts[me], me), vrecv, vcounts, root).MustWait(ctx)
			vpart := make([]int, counts[me])
			mpicx.Scatterv(c, vrecv, vcounts, vpart, root).MustWait(ctx)

			value, err := mpicx.BcastValue(c, fmt.Sprint("value ", me, length), root).Get(ctx)
			if err != nil || value != fmt.Sprint("value ", root, length) {
				return fmt.Errorf("BcastValue: %q %w", value, err)
			}
			values, err := mpicx.GatherValue(c, strings.Repeat("x", me), root).Get(ctx)
			if err != nil || (me == root) != (values != nil) {
				return fmt.Errorf("GatherValue: %q %w", values, err)
			}
			err = errors.Join(
				want("Bcast", buf, func(i int) int { return entry(root, i) }),
				want("Gather", recv, func(i int) int { return entry(i/length, i%length) }),
				want("Scatter", part, func(i int) int { return entry(me+root, i) }),
				want("Gatherv", vrecv, func(i int) int {
					r := 0
					for first(r+1) <= i {
						r++
					}
					return entry(r, i-first(r))
				}),
				want("Scatterv", vpart, func(i int) int { return entry(me, i) }),
				want("GatherValue", values, func(r int) string { return strings.Repeat("x", r) }),
			)
			if err != nil {
				return fmt.Errorf("root %d: %w", root, err)
			}
		}
		return nil
	})
}

func TestAllgatherAlltoall(t *testing.T) {
	each(t, func(ctx context.Context, c *mpicx.Comm, length int) error {
		n, me := c.Size(), c.Rank()
		all := make([]int, n*length)
		mpicx.Allgather(c, fill(length, me), all).MustWait(ctx)
		counts, sum := make([]int, n), 0
		for r := range counts {
			counts[r] = (r % 3) * length
			sum += counts[r]
		}
		vall := make([]int, sum)
		mpicx.Allgatherv(c, fill(counts[me], me), vall, counts).MustWait(ctx)
		var vwant []int
		for r := range n {
			vwant = append(vwant, fill(counts[r], r)...)
		}

		send, recv := make([]int, n*length), make([]int, n*length)
		for r := range n {
			copy(send[r*length:], fill(length, me*100+r))
		}
		mpicx.Alltoall(c, send, recv).MustWait(ctx)

		sendCounts, recvCounts := make([]int, n), make([]int, n) // a to b: (a+2b)%3 times length
		var vsend, vrecvWant []int
		for r := range n {
			sendCounts[r], recvCounts[r] = (me+2*r)%3*length, (r+2*me)%3*length
			vsend = append(vsend, fill(sendCounts[r], me*100+r)...)
			vrecvWant = append(vrecvWant, fill(recvCounts[r], r*100+me)...)
		}
		vrecv := make([]int, len(vrecvWant))
		mpicx.Alltoallv(c, vsend, sendCounts, vrecv, recvCounts).MustWait(ctx)

		values := mpicx.AllgatherValue(c, map[string]int{"rank": me}).MustGet(ctx)
		for r, v := range values {
			if v["rank"] != r {
				return fmt.Errorf("AllgatherValue: %v", values)
			}
		}
		return errors.Join(
			want("Allgather", all, func(i int) int { return entry(i/length, i%length) }),
			want("Allgatherv", vall, func(i int) int { return vwant[i] }),
			want("Alltoall", recv, func(i int) int { return entry(i/length*100+me, i%length) }),
			want("Alltoallv", vrecv, func(i int) int { return vrecvWant[i] }),
		)
	})
}

// Wrong arguments are errors that name the value and what was expected.
func TestBadCollectives(t *testing.T) {
	mpicxtest.Run(t, 1, func(ctx context.Context, c *mpicx.Comm) error {
		b := func(n int) []int { return make([]int, n) }
		add := func(a, b int) int { return a + b }
		for i, test := range []struct {
			f     future.Waiter
			class mpicx.Class
			want  string
		}{
			{mpicx.Bcast(c, b(1), 1), mpicx.ClassRoot, "Bcast: root 1 of world, expected 0 to 0"},
			{mpicx.Bcast(c, b(1), -1), mpicx.ClassRoot, "root -1"},
			{mpicx.Reduce(c, b(1), b(1), mpicx.Sum, 5), mpicx.ClassRoot, "Reduce: root 5"},
			{mpicx.Reduce(c, b(2), b(1), mpicx.Sum, 0), mpicx.ClassBuffer, "recv has 1 elements, expected 2"},
			{mpicx.Allreduce(c, b(2), b(3), mpicx.Sum), mpicx.ClassBuffer, "Allreduce: recv has 3 elements, expected 2"},
			{mpicx.Allreduce(c, b(2), b(2), mpicx.Op(77)), mpicx.ClassOp, "Op(77) is not defined on int"},
			{mpicx.Allreduce(c, make([]bool, 1), make([]bool, 1), mpicx.Sum), mpicx.ClassOp, "Sum is not defined on bool"},
			{mpicx.AllreduceFunc(c, b(2), b(3), add), mpicx.ClassBuffer, "AllreduceFunc: recv has 3"},
			{mpicx.AllreduceFunc(c, []string{"a"}, nil, func(a, b string) string { return a }), mpicx.ClassBuffer, "recv has 0 elements, expected 1"},
			{mpicx.ReduceFunc(c, []string{"a"}, nil, func(a, b string) string { return a }, 0), mpicx.ClassType, "string have pointers"},
			{mpicx.ScanFunc(c, [][]int{nil}, nil, func(a, b []int) []int { return a }), mpicx.ClassType, "[]int have pointers"},
			{mpicx.Scan(c, b(1), b(2), mpicx.Sum), mpicx.ClassBuffer, "Scan: recv has 2 elements, expected 1"},
			{mpicx.Exscan(c, b(1), b(0), mpicx.Sum), mpicx.ClassBuffer, "Exscan: recv has 0"},
			{mpicx.ReduceScatter(c, b(3), b(3), []int{2}, mpicx.Sum), mpicx.ClassBuffer, "recv buffer has 3 elements, expected 2"},
			{mpicx.ReduceScatter(c, b(3), b(3), []int{1, 2}, mpicx.Sum), mpicx.ClassCount, "2 recv counts, expected one for each of the 1 ranks"},
			{mpicx.ReduceScatter(c, b(3), b(2), []int{3}, mpicx.Sum), mpicx.ClassBuffer, "recv has 2 elements, expected 3"},
			{mpicx.Gather(c, b(2), b(3), 0), mpicx.ClassBuffer, "Gather: recv has 3 elements, expected 2"},
			{mpicx.Gather(c, b(2), b(2), 2), mpicx.ClassRoot, "root 2"},
			{mpicx.Gatherv(c, b(2), b(2), []int{-1}, 0), mpicx.ClassCount, "recv count -1 of rank 0"},
			{mpicx.Gatherv(c, b(2), b(2), nil, 0), mpicx.ClassCount, "0 recv counts"},
			{mpicx.Scatter(c, b(5), b(2), 0), mpicx.ClassBuffer, "Scatter: send has 5 elements, expected 2"},
			{mpicx.Scatterv(c, b(5), []int{4}, b(4), 0), mpicx.ClassBuffer, "send buffer has 5 elements, expected 4"},
			{mpicx.Scatterv(c, b(5), []int{5}, b(5), -3), mpicx.ClassRoot, "root -3"},
			{mpicx.Allgather(c, b(2), b(1)), mpicx.ClassBuffer, "Allgather: recv has 1"},
			{mpicx.Allgatherv(c, b(2), b(1), []int{1}), mpicx.ClassBuffer, "send has 2 elements, expected 1"},
			{mpicx.Allgatherv(c, b(2), b(2), []int{1, 1}), mpicx.ClassCount, "2 recv counts"},
			{mpicx.Allgatherv(c, b(2), b(2), []int{math.MinInt}), mpicx.ClassCount, "recv count -9"},
			{mpicx.Alltoall(c, b(2), b(1)), mpicx.ClassBuffer, "Alltoall: recv has 1"},
			{mpicx.Alltoallv(c, b(2), []int{2}, b(1), []int{2}), mpicx.ClassBuffer, "recv buffer has 1"},
			{mpicx.Alltoallv(c, b(2), []int{}, b(1), []int{1}), mpicx.ClassCount, "0 send counts"},
			{mpicx.BcastValue(c, 1, 1), mpicx.ClassRoot, "BcastValue: root 1"},
			{mpicx.BcastValue(c, func() {}, 0), mpicx.ClassType, "func()"},
			{mpicx.GatherValue(c, make(chan int), 0), mpicx.ClassType, "chan int"},
			{mpicx.AllgatherValue(c, func() {}), mpicx.ClassType, "func()"},
		} {
			err := test.f.Wait(ctx)
			e, is := errors.AsType[*mpicx.MPIError](err)
			if !is || e.Class != test.class || !strings.Contains(err.Error(), test.want) {
				return fmt.Errorf("%d: %v (%+v), expected %v, %q", i, err, e, test.class, test.want)
			}
		}
		return exchange(ctx, c, 0)
	})
}

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
			mpicx.Reduce(c, []int{i}, sum, mpicx.Sum, 0).MustWait(ctx)
			if c.Rank() == 1 {
				ahead.Add(1)
			} else if sum[0] != 2*i {
				return fmt.Errorf("round %d: the sum is %d", i, sum[0])
			}
		}
		return nil
	})
}
