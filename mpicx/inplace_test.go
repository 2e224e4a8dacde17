package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// twoBuffers is an operation as in-place tests know it: begun with a send and a recv buffer
// of this rank. At is where the shorter begins in the longer one when there is one buffer for
// both; more places may do.
type twoBuffers struct {
	begin      func(c *mpicx.Comm, send, recv []uint32, root int) future.Waiter
	send, recv func(c *mpicx.Comm, length, root int) int // lengths
	at         []func(c *mpicx.Comm, length, root int) int
}

// spread has one count for each rank, r%3 times the length; before(r) sums those before r.
func spread(n, length int) (counts []int, before func(r int) int) {
	for r := range n {
		counts = append(counts, r%3*length)
	}
	return counts, func(r int) (sum int) {
		for _, k := range counts[:r] {
			sum += k
		}
		return sum
	}
}

func inPlaceOperations() map[string]twoBuffers {
	type size = func(c *mpicx.Comm, length, root int) int
	one := func(_ *mpicx.Comm, length, _ int) int { return length }
	all := func(c *mpicx.Comm, length, _ int) int { return c.Size() * length }
	start := func(*mpicx.Comm, int, int) int { return 0 }
	mine := func(c *mpicx.Comm, length, _ int) int { return c.Rank() * length }
	mineV := func(c *mpicx.Comm, length, _ int) int { counts, _ := spread(c.Size(), length); return counts[c.Rank()] }
	allV := func(c *mpicx.Comm, length, _ int) int { _, before := spread(c.Size(), length); return before(c.Size()) }
	startV := func(c *mpicx.Comm, length, _ int) int { _, before := spread(c.Size(), length); return before(c.Rank()) }
	atRoot := func(f size) size { // at other ranks 0: not used
		return func(c *mpicx.Comm, length, root int) int {
			if c.Rank() != root {
				return 0
			}
			return f(c, length, root)
		}
	}
	// The length that one rank has of the spread says what that is at all.
	counts := func(c *mpicx.Comm, total int) []int {
		_, before := spread(c.Size(), 1)
		counts, _ := spread(c.Size(), total/max(1, before(c.Size())))
		return counts
	}
	type comm = mpicx.Comm
	return map[string]twoBuffers{
		"Reduce": {func(c *comm, send, recv []uint32, root int) future.Waiter {
			return mpicx.Reduce(c, send, recv, mpicx.Sum, root)
		}, one, atRoot(one), []size{start}},
		"Allreduce": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.Allreduce(c, send, recv, mpicx.Sum)
		}, one, one, []size{start}},
		"AllreduceFunc": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.AllreduceFunc(c, send, recv, func(a, b uint32) uint32 { return b }) // the last rank's
		}, one, one, []size{start}},
		"Scan": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.Scan(c, send, recv, mpicx.Sum)
		}, one, one, []size{start}},
		"Exscan": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.Exscan(c, send, recv, mpicx.Sum)
		}, one, one, []size{start}},
		"ReduceScatterBlock": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.ReduceScatterBlock(c, send, recv, mpicx.Sum)
		}, all, one, []size{start, mine}},
		"ReduceScatter": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.ReduceScatter(c, send, recv, counts(c, len(send)), mpicx.Sum)
		}, allV, mineV, []size{start, startV}},
		"Gather": {func(c *comm, send, recv []uint32, root int) future.Waiter {
			return mpicx.Gather(c, send, recv, root)
		}, one, atRoot(all), []size{mine}},
		"Gatherv": {func(c *comm, send, recv []uint32, root int) future.Waiter {
			return mpicx.Gatherv(c, send, recv, counts(c, len(recv)), root)
		}, mineV, atRoot(allV), []size{startV}},
		"Scatter": {func(c *comm, send, recv []uint32, root int) future.Waiter {
			return mpicx.Scatter(c, send, recv, root)
		}, atRoot(all), one, []size{mine}},
		"Scatterv": {func(c *comm, send, recv []uint32, root int) future.Waiter {
			return mpicx.Scatterv(c, send, counts(c, len(send)), recv, root)
		}, atRoot(allV), mineV, []size{startV}},
		"Allgather": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.Allgather(c, send, recv)
		}, one, all, []size{mine}},
		"Allgatherv": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.Allgatherv(c, send, recv, counts(c, len(recv)))
		}, mineV, allV, []size{startV}},
		"Alltoall": {func(c *comm, send, recv []uint32, _ int) future.Waiter {
			return mpicx.Alltoall(c, send, recv)
		}, all, all, []size{start}},
		"Alltoallv": {func(c *comm, send, recv []uint32, _ int) future.Waiter { // a to b: (a+b)%2 times length
			n, k := c.Size(), 0
			to := make([]int, n)
			for r := range n {
				k += (c.Rank() + r) % 2
			}
			for r := range n {
				to[r] = (c.Rank() + r) % 2 * (len(send) / max(1, k))
			}
			return mpicx.Alltoallv(c, send, to, recv, to)
		}, func(c *comm, length, _ int) int { return (c.Size() + c.Rank()%2) / 2 * length },
			func(c *comm, length, _ int) int { return (c.Size() + c.Rank()%2) / 2 * length }, []size{start}},
	}
}

// With one buffer for both, operations give what they give with two.
func TestInPlace(t *testing.T) {
	for _, n := range fitting(1, 2, 3, 4, 5, 6, 7, 8, 9) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
				return everyInPlace(ctx, c, "", lengths, indices(n))
			})
		})
	}
}

// So they do with every algorithm that there is.
func TestInPlaceAlgorithms(t *testing.T) {
	defer func() { collective.Forced = nil }()
	for _, operation := range collective.Operations {
		for algorithm, n := range product(operation.Algorithms, fitting(1, 2, 3, 5, 8)) {
			collective.Forced = map[string]string{operation.Name: algorithm.Name}
			t.Run(fmt.Sprintf("%s/%s/%d", operation.Name, algorithm.Name, n), func(t *testing.T) {
				mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
					return everyInPlace(ctx, c, operation.Name, []int{0, 1, 5, long}, []int{n - 1})
				})
			})
		}
	}
}

// everyInPlace compares the operations whose names begin with prefix, at all places.
func everyInPlace(ctx context.Context, c *mpicx.Comm, prefix string, lengths, roots []int) error {
	for name, op := range inOrder(inPlaceOperations()) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for length, root := range product(lengths, roots) {
			for i := range op.at {
				if err := inPlace(ctx, c, op, length, root, i); err != nil {
					return fmt.Errorf("%s, length %d, root %d, place %d: %w", name, length, root, i, err)
				}
			}
		}
	}
	return nil
}

func inPlace(ctx context.Context, c *mpicx.Comm, op twoBuffers, length, root, place int) error {
	sends, recvs := op.send(c, length, root), op.recv(c, length, root)
	send, recv := make([]uint32, sends), make([]uint32, recvs)
	for i := range send {
		send[i] = uint32(100*c.Rank() + i*i%97)
	}
	copy(recv, send) // which Exscan leaves alone at rank 0
	if err := op.begin(c, slices.Clone(send), recv, root).Wait(ctx); err != nil {
		return err
	}
	at := op.at[place](c, length, root)
	whole := make([]uint32, max(sends, recvs))
	var one, two []uint32
	switch {
	case sends == 0 || recvs == 0: // not used here
		one, two = send, make([]uint32, recvs)
	case sends <= recvs:
		one, two = whole[at:][:sends], whole
	default:
		one, two = whole, whole[at:][:recvs]
	}
	copy(one, send)
	err := op.begin(c, one, two, root).Wait(ctx)
	if err == nil && !slices.Equal(two, recv) {
		err = fmt.Errorf("in place %v, expected %v", two[:min(20, recvs)], recv[:min(20, recvs)])
	}
	return err
}

// Buffers that overlap otherwise are refused, before anything is sent.
func TestOverlap(t *testing.T) {
	oneProcess(t)
	for _, n := range []int{1, 2, 5} {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			const length = 6
			bad := c.Dup().MustGet(ctx) // the ranks make other calls, and not as many
			for name, op := range inPlaceOperations() {
				for by := -length; by <= length; by++ {
					root := c.Rank() // each rank is its own: all check
					sends, recvs := op.send(c, length, root), op.recv(c, length, root)
					if sends == 0 || recvs == 0 {
						continue
					}
					allowed := false
					for _, at := range op.at {
						allowed = allowed || by == at(c, length, root)
					}
					buf := make([]uint32, 100)
					longer := buf[20:][:max(sends, recvs)]
					send, recv := longer, buf[20+by:][:recvs]
					if sends < recvs {
						send, recv = buf[20+by:][:sends], longer
					}
					if overlap := by < max(sends, recvs) && by > -min(sends, recvs); !overlap || allowed {
						continue
					}
					err := op.begin(bad, send, recv, root).Wait(ctx)
					mpicx.Throw(explain(isMPIError(err, name, mpicx.ClassBuffer, "overlap, expected no memory in common, or that"), "by %d", by))
				}
			}
			words := []string{"a", "b", "c"}
			err := mpicx.AllreduceFunc(c, words[:2], words[1:], func(a, b string) string { return a + b }).Wait(ctx)
			mpicx.Throw(isMPIError(err, "AllreduceFunc", mpicx.ClassBuffer, "recv and send overlap, expected no memory in common, or that recv is send[0:]"))
			mpicx.AllreduceFunc(c, words, words, func(a, b string) string { return b + a }).MustWait(ctx)
			if len(words[2]) != n || words[0][0] != 'a' {
				return fmt.Errorf("in place: %q", words)
			}
			empty := []uint32{}
			return mpicx.Allreduce(c, empty, empty, mpicx.Sum).Wait(ctx)
		})
	}
}
