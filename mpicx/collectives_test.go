package mpicx_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// sizes of communicators, and lengths of a rank's part: nothing, little, and more
// than what trees carry.
var (
	sizes   = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17}
	lengths = []int{0, 1, 5, 1500}
)

// want compares the result of an operation with the expected one.
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
func entry(r, i int) int { return 1_000_000*r + i }

// A part is a rank's part of a call of n ranks. Length is that of what one rank gives or gets.
type part struct {
	n, me, root, length int
	counts              []int // one for each rank, r%3 times the length
}

func newPart(c *mpicx.Comm, root, length int) part {
	p := part{n: c.Size(), me: c.Rank(), root: root, length: length}
	for r := range p.n {
		p.counts = append(p.counts, r%3*length)
	}
	return p
}

func (p part) one() int   { return p.length }
func (p part) all() int   { return p.n * p.length }
func (p part) start() int { return 0 }
func (p part) place() int { return p.me * p.length }

func (p part) oneV() int   { return p.counts[p.me] }
func (p part) allV() int   { return total(p.counts) }
func (p part) placeV() int { return total(p.counts[:p.me]) }

func total(counts []int) (sum int) {
	for _, k := range counts {
		sum += k
	}
	return sum
}

// locate says which rank's element i is, and as which of that, where rank r has counts[r].
func locate(counts []int, i int) (rank, at int) {
	for i >= counts[rank] {
		i -= counts[rank]
		rank++
	}
	return rank, i
}

// A conforming operation has a send and a recv buffer of this length, and gives what is wanted as
// element i. At is where the shorter begins in the longer one when there is one buffer for both;
// more places may do.
type conforming struct {
	begin      func(c *mpicx.Comm, p part, send, recv []int) future.Waiter
	send, recv func(part) int
	want       func(p part, i int) int
	at         []func(part) int
}

// operations are all that move data or reduce it, but for values.
var operations = conformance()

func conformance() map[string]conforming {
	type comm = mpicx.Comm
	type place = []func(part) int
	atRoot := func(f func(part) int) func(part) int { // at other ranks 0: not used
		return func(p part) int {
			if p.me != p.root {
				return 0
			}
			return f(p)
		}
	}
	sums := func(ranks, i int) int { return entry(ranks*(ranks-1)/2, ranks*i) }
	sum := func(p part, i int) int { return sums(p.n, i) }
	gathered := func(p part, i int) int { return entry(i/p.length, i%p.length) }
	gatheredV := func(p part, i int) int { return entry(locate(p.counts, i)) }
	alltoallv := func(count func(from, to int) int, at place) conforming {
		from := func(p part, r int) (counts []int) {
			for to := range p.n {
				counts = append(counts, count(r, to)*p.length)
			}
			return counts
		}
		to := func(p part, r int) (counts []int) {
			for from := range p.n {
				counts = append(counts, count(from, r)*p.length)
			}
			return counts
		}
		call := func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Alltoallv(c, send, from(p, p.me), recv, to(p, p.me))
		}
		sends, recvs := func(p part) int { return total(from(p, p.me)) }, func(p part) int { return total(to(p, p.me)) }
		return conforming{call, sends, recvs, func(p part, i int) int {
			r, i := locate(to(p, p.me), i)
			return entry(r, total(from(p, r)[:p.me])+i)
		}, at}
	}
	return map[string]conforming{
		"Barrier": {func(c *comm, _ part, _, _ []int) future.Waiter { return c.Barrier() }, part.start, part.start, nil, nil},
		"Bcast": {func(c *comm, p part, send, recv []int) future.Waiter {
			if p.me == p.root {
				recv = send
			}
			return mpicx.Bcast(c, recv, p.root)
		},
			atRoot(part.one), func(p part) int { return p.one() - atRoot(part.one)(p) }, func(p part, i int) int { return entry(p.root, i) }, nil},
		"Reduce": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Reduce(c, send, recv, mpicx.Sum, p.root)
		},
			part.one, atRoot(part.one), sum, place{part.start}},
		"Allreduce": {func(c *comm, _ part, send, recv []int) future.Waiter {
			return mpicx.Allreduce(c, send, recv, mpicx.Sum)
		},
			part.one, part.one, sum, place{part.start}},
		"AllreduceFunc": {func(c *comm, _ part, send, recv []int) future.Waiter {
			return mpicx.AllreduceFunc(c, send, recv, func(a, b int) int { return b })
		},
			part.one, part.one, func(p part, i int) int { return entry(p.n-1, i) }, place{part.start}},
		"Scan": {func(c *comm, _ part, send, recv []int) future.Waiter { return mpicx.Scan(c, send, recv, mpicx.Sum) },
			part.one, part.one, func(p part, i int) int { return sums(p.me+1, i) }, place{part.start}},
		"Exscan": {func(c *comm, _ part, send, recv []int) future.Waiter {
			copy(recv, send) // which it leaves alone at rank 0
			return mpicx.Exscan(c, send, recv, mpicx.Sum)
		}, part.one, part.one, func(p part, i int) int { return sums(max(p.me, 1), i) }, place{part.start}},
		"ReduceScatterBlock": {func(c *comm, _ part, send, recv []int) future.Waiter {
			return mpicx.ReduceScatterBlock(c, send, recv, mpicx.Sum)
		},
			part.all, part.one, func(p part, i int) int { return sums(p.n, p.place()+i) }, place{part.start, part.place}},
		"ReduceScatter": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.ReduceScatter(c, send, recv, p.counts, mpicx.Sum)
		},
			part.allV, part.oneV, func(p part, i int) int { return sums(p.n, p.placeV()+i) }, place{part.start, part.placeV}},
		"Gather": {func(c *comm, p part, send, recv []int) future.Waiter { return mpicx.Gather(c, send, recv, p.root) },
			part.one, atRoot(part.all), gathered, place{part.place}},
		"Gatherv": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Gatherv(c, send, recv, p.counts, p.root)
		},
			part.oneV, atRoot(part.allV), gatheredV, place{part.placeV}},
		"Scatter": {func(c *comm, p part, send, recv []int) future.Waiter { return mpicx.Scatter(c, send, recv, p.root) },
			atRoot(part.all), part.one, func(p part, i int) int { return entry(p.root, p.place()+i) }, place{part.place}},
		"Scatterv": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Scatterv(c, send, p.counts, recv, p.root)
		},
			atRoot(part.allV), part.oneV, func(p part, i int) int { return entry(p.root, p.placeV()+i) }, place{part.placeV}},
		"Allgather": {func(c *comm, _ part, send, recv []int) future.Waiter { return mpicx.Allgather(c, send, recv) },
			part.one, part.all, gathered, place{part.place}},
		"Allgatherv": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Allgatherv(c, send, recv, p.counts)
		},
			part.oneV, part.allV, gatheredV, place{part.placeV}},
		"Alltoall": {func(c *comm, _ part, send, recv []int) future.Waiter { return mpicx.Alltoall(c, send, recv) },
			part.all, part.all, func(p part, i int) int { return entry(i/p.length, p.place()+i%p.length) }, place{part.start}},
		"Alltoallv":                 alltoallv(func(from, to int) int { return (from + to) % 2 }, place{part.start}),
		"Alltoallv of other counts": alltoallv(func(from, to int) int { return (from + 2*to) % 3 }, nil),
	}
}

// carriesOut calls the operation, and says whether its result is what it should be. At is where
// the shorter buffer begins in the longer one; nil: they are apart.
func (o conforming) carriesOut(ctx context.Context, c *mpicx.Comm, length, root int, at func(part) int) error {
	p := newPart(c, root, length)
	send, recv := o.buffers(p)
	switch {
	case at == nil || len(send) == 0 || len(recv) == 0:
	case len(send) <= len(recv):
		send = recv[at(p):][:len(send)]
	default:
		recv = send[at(p):][:len(recv)]
	}
	for i := range send {
		send[i] = entry(p.me, i)
	}
	if err := o.begin(c, p, send, recv).Wait(ctx); err != nil {
		return err
	}
	return want("recv", recv, func(i int) int { return o.want(p, i) })
}

// buffers makes them. Tiny ones would share memory.
func (o conforming) buffers(p part) (send, recv []int) {
	return make([]int, o.send(p), max(o.send(p), 64)), make([]int, o.recv(p), max(o.recv(p), 64))
}

// belongs says whether the operation of this name has the algorithms of another one.
func belongs(name, operation string) bool {
	return strings.HasPrefix(name, operation) || name == "Exscan" && operation == "Scan"
}

// conform carries out the operations with these algorithms, with buffers that are apart, and with
// one buffer for both.
func conform(ctx context.Context, c *mpicx.Comm, operation string, lengths, roots []int) error {
	rooted := []string{"Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"}
	for name, op := range inOrder(operations) {
		for length, root := range product(lengths, roots) {
			if !belongs(name, operation) || root != roots[0] && !slices.Contains(rooted, name) {
				continue
			}
			for i, at := range append([]func(part) int{nil}, op.at...) {
				err := op.carriesOut(ctx, c, length, root, at)
				mpicx.Throw(explain(err, "%s, length %d, root %d, place %d", name, length, root, i))
			}
		}
	}
	return nil
}

// Every operation gives what it promises.
func TestCollectives(t *testing.T) {
	for _, n := range fitting(sizes...) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error { return conform(ctx, c, "", lengths, indices(n)) })
		})
	}
}

// So it does with every algorithm that there is.
func TestCollectiveAlgorithms(t *testing.T) {
	defer func() { collective.Forced = nil }()
	for _, operation := range collective.Operations {
		for algorithm, n := range product(operation.Algorithms, fitting(1, 2, 3, 5, 8)) {
			collective.Forced = map[string]string{operation.Name: algorithm.Name}
			t.Run(fmt.Sprintf("%s/%s/%d", operation.Name, algorithm.Name, n), func(t *testing.T) {
				mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
					return conform(ctx, c, operation.Name, []int{0, 1, 5, long}, []int{n - 1})
				})
			})
		}
	}
}

// Buffers that overlap otherwise are refused, before anything is sent.
func TestOverlap(t *testing.T) {
	oneProcess(t)
	for _, n := range []int{1, 2, 5} {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			bad := c.Dup().MustGet(ctx)  // the ranks make other calls, and not as many
			p := newPart(c, c.Rank(), 6) // each rank is its own root: all check
			for name, op := range operations {
				for send, recv := range op.overlaps(p) {
					err := op.begin(bad, p, send, recv).Wait(ctx)
					mpicx.Throw(isMPIError(err, name, mpicx.ClassBuffer, "overlap, expected no memory in common, or that"))
				}
			}
			words := []string{"a", "b", "c"}
			err := mpicx.AllreduceFunc(c, words[:2], words[1:], func(a, b string) string { return a + b }).Wait(ctx)
			mpicx.Throw(isMPIError(err, "AllreduceFunc", mpicx.ClassBuffer, "recv and send overlap, expected no memory in common, or that recv is send[0:]"))
			mpicx.AllreduceFunc(c, words, words, func(a, b string) string { return b + a }).MustWait(ctx)
			require.Equal(t, strings.Repeat("c", n), words[2])
			empty := []int{}
			return mpicx.Allreduce(c, empty, empty, mpicx.Sum).Wait(ctx)
		})
	}
}

// overlaps are all pairs of buffers that have memory in common where they must not.
func (o conforming) overlaps(p part) iter.Seq2[[]int, []int] {
	return func(yield func(send, recv []int) bool) {
		sends, recvs := o.send(p), o.recv(p)
		for by := 1 - min(sends, recvs); o.at != nil && min(sends, recvs) > 0 && by < max(sends, recvs); by++ {
			if slices.ContainsFunc(o.at, func(at func(part) int) bool { return at(p) == by }) {
				continue
			}
			buf := make([]int, 200)
			send, recv := buf[100:][:sends], buf[100+by:][:recvs]
			if sends < recvs {
				send, recv = buf[100+by:][:sends], buf[100:][:recvs]
			}
			if !yield(send, recv) {
				return
			}
		}
	}
}

// Wrong arguments are errors that name the value and what was expected.
func TestBadCollectives(t *testing.T) {
	mpicxtest.Run(t, 1, func(ctx context.Context, c *mpicx.Comm) error {
		b := func(n int) []int { return make([]int, n) }
		noFunc := func(a, _ func()) func() { return a }
		mpicx.Throw(refused(ctx,
			refusal{mpicx.Bcast(c, b(1), 1), "Bcast", mpicx.ClassRoot, "root 1 of world, expected 0 to 0"},
			refusal{mpicx.Bcast(c, b(1), -1), "Bcast", mpicx.ClassRoot, "root -1"},
			refusal{mpicx.Reduce(c, b(1), b(1), mpicx.Sum, 5), "Reduce", mpicx.ClassRoot, "root 5"},
			refusal{mpicx.Reduce(c, b(2), b(1), mpicx.Sum, 0), "Reduce", mpicx.ClassBuffer, "recv has 1 elements, expected 2"},
			refusal{mpicx.Allreduce(c, b(2), b(3), mpicx.Sum), "Allreduce", mpicx.ClassBuffer, "recv has 3 elements, expected 2"},
			refusal{mpicx.Allreduce(c, b(2), b(2), mpicx.Op(77)), "Allreduce", mpicx.ClassOp, "Op(77) is not defined on int"},
			refusal{mpicx.Allreduce(c, make([]bool, 1), make([]bool, 1), mpicx.Sum), "Allreduce", mpicx.ClassOp, "Sum is not defined on bool"},
			refusal{mpicx.AllreduceFunc(c, b(2), b(3), add), "AllreduceFunc", mpicx.ClassBuffer, "recv has 3"},
			refusal{mpicx.AllreduceFunc(c, []string{"a"}, nil, func(a, b string) string { return a }), "AllreduceFunc", mpicx.ClassBuffer, "recv has 0 elements, expected 1"},
			refusal{mpicx.ReduceFunc(c, []string{"a"}, nil, func(a, b string) string { return a }, 0), "ReduceFunc", mpicx.ClassType, "string have pointers"},
			refusal{mpicx.ScanFunc(c, [][]int{nil}, nil, func(a, b []int) []int { return a }), "ScanFunc", mpicx.ClassType, "[]int have pointers"},
			refusal{mpicx.Scan(c, b(1), b(2), mpicx.Sum), "Scan", mpicx.ClassBuffer, "recv has 2 elements, expected 1"},
			refusal{mpicx.Exscan(c, b(1), b(0), mpicx.Sum), "Exscan", mpicx.ClassBuffer, "recv has 0"},
			refusal{mpicx.ReduceScatter(c, b(3), b(3), []int{2}, mpicx.Sum), "ReduceScatter", mpicx.ClassBuffer, "recv buffer has 3 elements, expected 2"},
			refusal{mpicx.ReduceScatter(c, b(3), b(3), []int{1, 2}, mpicx.Sum), "ReduceScatter", mpicx.ClassCount, "2 recv counts, expected one for each of the 1 ranks"},
			refusal{mpicx.ReduceScatter(c, b(3), b(2), []int{3}, mpicx.Sum), "ReduceScatter", mpicx.ClassBuffer, "recv has 2 elements, expected 3"},
			refusal{mpicx.Gather(c, b(2), b(3), 0), "Gather", mpicx.ClassBuffer, "recv has 3 elements, expected 2"},
			refusal{mpicx.Gather(c, b(2), b(2), 2), "Gather", mpicx.ClassRoot, "root 2"},
			refusal{mpicx.Gatherv(c, b(2), b(2), []int{-1}, 0), "Gatherv", mpicx.ClassCount, "recv count -1 of rank 0"},
			refusal{mpicx.Gatherv(c, b(2), b(2), nil, 0), "Gatherv", mpicx.ClassCount, "0 recv counts"},
			refusal{mpicx.Scatter(c, b(5), b(2), 0), "Scatter", mpicx.ClassBuffer, "send has 5 elements, expected 2"},
			refusal{mpicx.Scatterv(c, b(5), []int{4}, b(4), 0), "Scatterv", mpicx.ClassBuffer, "send buffer has 5 elements, expected 4"},
			refusal{mpicx.Scatterv(c, b(5), []int{5}, b(5), -3), "Scatterv", mpicx.ClassRoot, "root -3"},
			refusal{mpicx.Allgather(c, b(2), b(1)), "Allgather", mpicx.ClassBuffer, "recv has 1"},
			refusal{mpicx.Allgatherv(c, b(2), b(1), []int{1}), "Allgatherv", mpicx.ClassBuffer, "send has 2 elements, expected 1"},
			refusal{mpicx.Allgatherv(c, b(2), b(2), []int{1, 1}), "Allgatherv", mpicx.ClassCount, "2 recv counts"},
			refusal{mpicx.Allgatherv(c, b(2), b(2), []int{math.MinInt}), "Allgatherv", mpicx.ClassCount, "recv count -9"},
			refusal{mpicx.Alltoall(c, b(2), b(1)), "Alltoall", mpicx.ClassBuffer, "recv has 1"},
			refusal{mpicx.Alltoallv(c, b(2), []int{2}, b(1), []int{2}), "Alltoallv", mpicx.ClassBuffer, "recv buffer has 1"},
			refusal{mpicx.Alltoallv(c, b(2), []int{}, b(1), []int{1}), "Alltoallv", mpicx.ClassCount, "0 send counts"},
			refusal{mpicx.BcastValue(c, 1, 1), "BcastValue", mpicx.ClassRoot, "root 1"},
			refusal{mpicx.BcastValue(c, func() {}, 0), "BcastValue", mpicx.ClassType, "func()"},
			refusal{mpicx.GatherValue(c, make(chan int), 0), "GatherValue", mpicx.ClassType, "chan int"},
			refusal{mpicx.AllgatherValue(c, func() {}), "AllgatherValue", mpicx.ClassType, "func()"},
			refusal{mpicx.ReduceValue(c, 1, add, 1), "ReduceValue", mpicx.ClassRoot, "root 1"},
			refusal{mpicx.ReduceValue(c, "", func(a, b string) string { return a }, -1), "ReduceValue", mpicx.ClassRoot, "root -1"},
			refusal{mpicx.AllreduceValue(c, func() {}, noFunc), "AllreduceValue", mpicx.ClassType, "func()"},
			refusal{mpicx.ExscanValue(c, func() {}, noFunc), "ExscanValue", mpicx.ClassType, "func()"},
			refusal{mpicx.ScatterValue(c, []int{1, 2}, 0), "ScatterValue", mpicx.ClassBuffer, "vs has 2 elements, expected 1"},
			refusal{mpicx.ScatterValue[int](c, nil, 0), "ScatterValue", mpicx.ClassBuffer, "vs has 0 elements"},
			refusal{mpicx.ScatterValue(c, []int{1}, 3), "ScatterValue", mpicx.ClassRoot, "root 3"},
			refusal{mpicx.ScatterValue(c, []func(){func() {}}, 0), "ScatterValue", mpicx.ClassType, "func()"},
			refusal{mpicx.ReduceScatterBlock(c, []int{1, 2}, []int{0}, mpicx.Sum), "ReduceScatterBlock", mpicx.ClassBuffer, "send has 2 elements, expected 1"},
			refusal{mpicx.ReduceScatterBlock(c, []float64{1}, []float64{0}, mpicx.BAnd), "ReduceScatterBlock", mpicx.ClassOp, "BAnd is not defined on float64"},
			refusal{mpicx.ReduceScatterBlockFunc(c, []string{""}, []string{""}, func(a, b string) string { return a }), "ReduceScatterBlockFunc", mpicx.ClassType, "string"},
		))
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
			require.LessOrEqual(t, ahead.Load(), int64(100))
		}
		for i := range 2000 {
			sum := []int{2 * i}
			mpicx.Reduce(c, []int{i}, sum, mpicx.Sum, 0).MustWait(ctx)
			require.Equal(t, 2*i, sum[0])
			ahead.Add(int64(c.Rank()))
		}
		return nil
	})
}
