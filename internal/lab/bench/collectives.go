package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A call is one rank's part of a collective operation, from start to end. The root is used if the
// operation has one.
type call func(ctx context.Context, root int)

// A collectiveOp is an operation on float64s. A rank has e of them: all that it combines or
// broadcasts; the part that it gives to Gather and Allgather or gets from Scatter; or its parts for
// all ranks in Alltoall and ReduceScatter, each of at least one element.
type collectiveOp struct {
	name string
	ours func(b *buffers) func(root int) *future.Future[struct{}]
	star func(s *star) call
	work func(n, e int) work
}

// buffers are the buffers of one rank.
type buffers struct {
	c          *mpicx.Comm
	e          int
	send, recv []float64
}

var collectives = []collectiveOp{
	{"Barrier", func(b *buffers) func(int) *future.Future[struct{}] {
		return func(int) *future.Future[struct{}] { return b.c.Barrier() }
	}, (*star).barrier, func(n, _ int) work { return work{wakes: n - 1} }},

	{"Bcast", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send = ones(b.e)
		return func(root int) *future.Future[struct{}] { return mpicx.Bcast(b.c, b.send, root) }
	}, (*star).bcast, func(n, e int) work { return work{copied: (n - 1) * e, wakes: n - 1} }},

	{"Reduce", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = ones(b.e), ones(b.e)
		return func(root int) *future.Future[struct{}] {
			return mpicx.Reduce(b.c, b.send, b.recv, mpicx.Sum, root)
		}
	}, (*star).reduce, func(n, e int) work { return work{combined: (n - 1) * e, wakes: 1} }},

	{"Allreduce", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = ones(b.e), ones(b.e)
		return func(int) *future.Future[struct{}] { return mpicx.Allreduce(b.c, b.send, b.recv, mpicx.Sum) }
	}, (*star).allreduce, func(n, e int) work { return work{combined: (n - 1) * e, copied: (n - 1) * e, wakes: n - 1} }},

	{"Allgather", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = ones(b.e), ones(b.c.Size()*b.e)
		return func(int) *future.Future[struct{}] { return mpicx.Allgather(b.c, b.send, b.recv) }
	}, (*star).allgather, func(n, e int) work { return work{copied: n * n * e, wakes: n - 1} }},

	{"Gather", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = ones(b.e), b.atRoots()
		return func(root int) *future.Future[struct{}] { return mpicx.Gather(b.c, b.send, b.recv, root) }
	}, (*star).gather, func(n, e int) work { return work{copied: n * e, wakes: 1} }},

	{"Scatter", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = b.atRoots(), ones(b.e)
		return func(root int) *future.Future[struct{}] { return mpicx.Scatter(b.c, b.send, b.recv, root) }
	}, (*star).scatter, func(n, e int) work { return work{copied: n * e, wakes: n - 1} }},

	{"Alltoall", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = ones(b.all()), ones(b.all())
		return func(int) *future.Future[struct{}] { return mpicx.Alltoall(b.c, b.send, b.recv) }
	}, (*star).alltoall, func(n, e int) work { return work{copied: n * max(n, e), wakes: n - 1} }},

	{"ReduceScatter", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = ones(b.all()), ones(b.all()/b.c.Size())
		counts := make([]int, b.c.Size())
		for i := range counts {
			counts[i] = len(b.recv)
		}
		return func(int) *future.Future[struct{}] {
			return mpicx.ReduceScatter(b.c, b.send, b.recv, counts, mpicx.Sum)
		}
	}, (*star).reduceScatter, func(n, e int) work { return work{combined: (n - 1) * max(n, e), wakes: n - 1} }},

	{"Scan", func(b *buffers) func(int) *future.Future[struct{}] {
		b.send, b.recv = ones(b.e), ones(b.e)
		return func(int) *future.Future[struct{}] { return mpicx.Scan(b.c, b.send, b.recv, mpicx.Sum) }
	}, (*star).scan, func(n, e int) work { return work{combined: (n - 1) * e, copied: e, wakes: n - 1} }},
}

// all is the number of elements of the parts for all ranks.
func (b *buffers) all() int { return max(b.e, b.c.Size()) }

// atRoots returns a buffer for the parts of all ranks, at ranks that may be the root.
func (b *buffers) atRoots() []float64 {
	if r, n := b.c.Rank(), b.c.Size(); r != rootOf(0, n) && r != rootOf(1, n) {
		return nil
	}
	return ones(b.c.Size() * b.e)
}

// ones returns a buffer whose pages exist: pages that were never written are all one page of zeros,
// which costs nothing to read.
func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// rootOf returns the root of call i, alternately the first and the last rank. So no root is ahead
// of the others by more than one call.
func rootOf(i, n int) int { return i % 2 * (n - 1) }

// A cell is one entry of the tables of collective operations.
type cell struct {
	collectiveOp
	bytes int // per rank
}

func (c cell) String() string { return c.name + ":" + strconv.Itoa(c.bytes) }

func (c cell) call(comm *mpicx.Comm) call {
	start := c.ours(&buffers{c: comm, e: c.bytes / 8})
	return func(ctx context.Context, root int) { start(root).MustWait(ctx) }
}

// timed returns the average time of a call, and the allocations of this process in all calls.
func timed(ctx context.Context, c *mpicx.Comm, times int, f call) (each time.Duration, allocations uint64) {
	var before, after runtime.MemStats
	if c.Rank() == 0 {
		runtime.ReadMemStats(&before)
	}
	c.Barrier().MustWait(ctx)
	start := time.Now()
	for i := range times {
		f(ctx, rootOf(i, c.Size()))
	}
	c.Barrier().MustWait(ctx)
	each = time.Since(start) / time.Duration(times)
	if c.Rank() == 0 {
		runtime.ReadMemStats(&after)
	}
	return each, after.Mallocs - before.Mallocs
}

// calibrated returns how many calls of f make a sample of some milliseconds, the same at all ranks.
func calibrated(ctx context.Context, c *mpicx.Comm, f call) int {
	timed(ctx, c, 2, f)
	each, _ := timed(ctx, c, 2, f)
	times := []int{1 + int(min(2000, 3*time.Millisecond/max(each, 1)))}
	mpicx.Bcast(c, times, 0).MustWait(ctx)
	return times[0]
}

// sideBySide takes samples of two calls of n goroutine ranks, in turn. It also returns how much one
// call of the first side allocates per rank.
func sideBySide(n, count int, sides func(context.Context, *mpicx.Comm) [2]call) (ours, theirs samples, allocations float64) {
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		calls := sides(ctx, world)
		times := [2]int{calibrated(ctx, world, calls[0]), calibrated(ctx, world, calls[1])}
		for i := range 2 * count {
			which := (i + i/2) % 2 // the first side alternates
			each, mallocs := timed(ctx, world, times[which], calls[which])
			switch {
			case world.Rank() != 0:
			case which == 1:
				theirs = append(theirs, float64(each))
			default:
				ours = append(ours, float64(each))
				allocations = float64(mallocs) / float64(times[0]*n)
			}
		}
		return nil
	}, mpicx.WithRanks(n)))
	return ours, theirs, allocations
}

// settle has the ranks wait for each other for 0.2 s: the system may have begun processes on one core.
func settle(ctx context.Context, c *mpicx.Comm) {
	start := time.Now()
	for more := []bool{true}; more[0]; {
		more[0] = time.Since(start) < 200*time.Millisecond
		mpicx.Bcast(c, more, 0).MustWait(ctx)
		c.Barrier().MustWait(ctx)
	}
}

// jobCollectives prints n samples of each cell at rank 0: nanoseconds, and allocations per call.
func jobCollectives(ctx context.Context, world *mpicx.Comm, n int, cells []string) error {
	settle(ctx, world)
	for _, name := range cells {
		c, err := cellOf(name)
		if err != nil {
			return err
		}
		f := c.call(world)
		times := calibrated(ctx, world, f)
		for range n {
			each, allocations := timed(ctx, world, times, f)
			if world.Rank() == 0 {
				fmt.Fprintln(out, int(each), float64(allocations)/float64(times))
			}
		}
	}
	return nil
}

func cellOf(name string) (cell, error) {
	op, bytes, _ := strings.Cut(name, ":")
	for _, c := range collectives {
		if c.name == op {
			b, err := strconv.Atoi(bytes)
			return cell{c, b}, err
		}
	}
	return cell{}, fmt.Errorf("no collective %q", name)
}
