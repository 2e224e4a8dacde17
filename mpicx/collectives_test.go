package mpicx_test

import (
	"context"
	"fmt"
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
func entry(r, i int) int { return 1_000_000*r + i }

// A part is a rank's part of a call of n ranks. Length is that of what one rank gives or gets.
type part struct{ n, me, root, length int }

func (p part) one() int   { return p.length }
func (p part) all() int   { return p.n * p.length }
func (p part) start() int { return 0 }
func (p part) place() int { return p.me * p.length }

// counts has one count for each rank, r%3 times the length.
func (p part) counts() (counts []int) {
	for r := range p.n {
		counts = append(counts, r%3*p.length)
	}
	return counts
}

func (p part) oneV() int   { return p.counts()[p.me] }
func (p part) allV() int   { return total(p.counts()) }
func (p part) placeV() int { return total(p.counts()[:p.me]) }

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

// conformance is the table of all operations that move data or reduce it, but for values.
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
	gatheredV := func(p part, i int) int { return entry(locate(p.counts(), i)) }
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
		"Bcast": {func(c *comm, p part, send, recv []int) future.Waiter {
			copy(recv, send)
			return mpicx.Bcast(c, recv, p.root)
		}, atRoot(part.one), part.one, func(p part, i int) int { return entry(p.root, i) }, nil},
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
			return mpicx.ReduceScatter(c, send, recv, p.counts(), mpicx.Sum)
		},
			part.allV, part.oneV, func(p part, i int) int { return sums(p.n, p.placeV()+i) }, place{part.start, part.placeV}},
		"Gather": {func(c *comm, p part, send, recv []int) future.Waiter { return mpicx.Gather(c, send, recv, p.root) },
			part.one, atRoot(part.all), gathered, place{part.place}},
		"Gatherv": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Gatherv(c, send, recv, p.counts(), p.root)
		},
			part.oneV, atRoot(part.allV), gatheredV, place{part.placeV}},
		"Scatter": {func(c *comm, p part, send, recv []int) future.Waiter { return mpicx.Scatter(c, send, recv, p.root) },
			atRoot(part.all), part.one, func(p part, i int) int { return entry(p.root, p.place()+i) }, place{part.place}},
		"Scatterv": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Scatterv(c, send, p.counts(), recv, p.root)
		},
			atRoot(part.allV), part.oneV, func(p part, i int) int { return entry(p.root, p.placeV()+i) }, place{part.placeV}},
		"Allgather": {func(c *comm, _ part, send, recv []int) future.Waiter { return mpicx.Allgather(c, send, recv) },
			part.one, part.all, gathered, place{part.place}},
		"Allgatherv": {func(c *comm, p part, send, recv []int) future.Waiter {
			return mpicx.Allgatherv(c, send, recv, p.counts())
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
	p := part{c.Size(), c.Rank(), root, length}
	send, recv := make([]int, o.send(p)), make([]int, o.recv(p))
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

// conform carries out the operations whose names begin with prefix, with buffers that are apart,
// and with one buffer for both.
func conform(ctx context.Context, c *mpicx.Comm, prefix string, lengths, roots []int) error {
	rooted := []string{"Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"}
	for name, op := range inOrder(conformance()) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for length, root := range product(lengths, roots) {
			if root != roots[0] && !slices.Contains(rooted, name) {
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
			mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
				return conform(ctx, c, "", lengths, indices(n))
			})
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

// Operations of values give each rank's own, in the order of ranks.
func TestValuesOfRanks(t *testing.T) {
	for _, n := range fitting(sizes...) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			me := c.Rank()
			var all []string
			for r := range n {
				all = append(all, strings.Repeat("x", r))
			}
			require.Equal(t, all, mpicx.AllgatherValue(c, all[me]).MustGet(ctx))
			for root := range n {
				require.Equal(t, all[root], mpicx.BcastValue(c, all[me], root).MustGet(ctx))
				values := mpicx.GatherValue(c, all[me], root).MustGet(ctx)
				if me != root {
					require.Nil(t, values)
					continue
				}
				require.Equal(t, all, values)
			}
			return nil
		})
	}
}

// Buffers that overlap otherwise are refused, before anything is sent.
func TestOverlap(t *testing.T) {
	oneProcess(t)
	for _, n := range []int{1, 2, 5} {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			const length = 6
			bad := c.Dup().MustGet(ctx)              // the ranks make other calls, and not as many
			p := part{n, c.Rank(), c.Rank(), length} // each rank is its own root: all check
			for name, op := range conformance() {
				sends, recvs := op.send(p), op.recv(p)
				for by := 1 - min(sends, recvs); op.at != nil && min(sends, recvs) > 0 && by < max(sends, recvs); by++ {
					if slices.ContainsFunc(op.at, func(at func(part) int) bool { return at(p) == by }) {
						continue
					}
					buf := make([]int, 200)
					longer := buf[100:][:max(sends, recvs)]
					send, recv := longer, buf[100+by:][:recvs]
					if sends < recvs {
						send, recv = buf[100+by:][:sends], longer
					}
					err := op.begin(bad, p, send, recv).Wait(ctx)
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
			empty := []int{}
			return mpicx.Allreduce(c, empty, empty, mpicx.Sum).Wait(ctx)
		})
	}
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
			mpicx.Throw(explain(classIs(err, test.class), "%d", i))
			require.ErrorContains(t, err, test.want)
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
