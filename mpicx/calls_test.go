package mpicx_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	plans "github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A place is where ranks make calls: a communicator, and where it has neighbours, these.
type place struct {
	*mpicx.Comm
	near  mpicx.Neighborhood   // nil: there are none
	grid  *mpicx.Cart          // nil: it is none
	halo  *mpicx.Halo[float64] // nil: none has been made
	inter *mpicx.Intercomm     // whose union it is; nil: of none
}

// A callee is a collective call and its text.
type callee struct {
	text  string
	begin func(p place) waiter
}

type waiter interface{ Wait(context.Context) error }

// blocking is a call that returns no future. It begins in Wait.
type blocking func(ctx context.Context) error

func (b blocking) Wait(ctx context.Context) error { return b(ctx) }

func barrier(ctx context.Context, world *mpicx.Comm) error { return world.Barrier().Wait(ctx) }

// callees are collective calls of n ranks of which no two fit.
func callees(n int) []callee {
	f := func(k int) []float64 { return make([]float64, k) }
	ones := slices.Repeat([]int{1}, n)
	sum := func(a, b float64) float64 { return a + b }
	bytes, ints := func() []byte { return make([]byte, 7) }, func(k int) []int32 { return make([]int32, k) }
	return []callee{
		{"Barrier", func(p place) waiter { return p.Barrier() }},
		{"Bcast(root 0, 3 × float64)", func(p place) waiter { return mpicx.Bcast(p.Comm, f(3), 0) }},
		{"Bcast(root 1, 3 × float64)", func(p place) waiter { return mpicx.Bcast(p.Comm, f(3), 1) }},
		{"Bcast(root 0, 4 × float64)", func(p place) waiter { return mpicx.Bcast(p.Comm, f(4), 0) }},
		{"Bcast(root 0, 3 × int32)", func(p place) waiter { return mpicx.Bcast(p.Comm, ints(3), 0) }},
		{"Bcast(root 1, 7 × byte)", func(p place) waiter { return mpicx.Bcast(p.Comm, bytes(), 1) }},
		{"Bcast(root 1, 100000 × float64)", func(p place) waiter { return mpicx.Bcast(p.Comm, f(100_000), 1) }},
		{"Reduce(Sum, root 0, 3 × float64)", func(p place) waiter { return mpicx.Reduce(p.Comm, f(3), f(3), mpicx.Sum, 0) }},
		{"Reduce(Sum, root 1, 3 × float64)", func(p place) waiter { return mpicx.Reduce(p.Comm, f(3), f(3), mpicx.Sum, 1) }},
		{"Reduce(Max, root 1, 3 × float64)", func(p place) waiter { return mpicx.Reduce(p.Comm, f(3), f(3), mpicx.Max, 1) }},
		{"ReduceFunc(root 1, 3 × float64)", func(p place) waiter { return mpicx.ReduceFunc(p.Comm, f(3), f(3), sum, 1) }},
		{"ReduceValue(root 0, float64)", func(p place) waiter { return mpicx.ReduceValue(p.Comm, 1.0, sum, 0) }},
		{"Allreduce(Sum, 3 × float64)", func(p place) waiter { return mpicx.Allreduce(p.Comm, f(3), f(3), mpicx.Sum) }},
		{"AllreduceFunc(3 × float64)", func(p place) waiter { return mpicx.AllreduceFunc(p.Comm, f(3), f(3), sum) }},
		{"AllreduceValue(float64)", func(p place) waiter { return mpicx.AllreduceValue(p.Comm, 1.0, sum) }},
		{"Gather(root 0, 1 × int32)", func(p place) waiter { return mpicx.Gather(p.Comm, ints(1), ints(n), 0) }},
		{"Gather(root 0, 2000 × int32)", func(p place) waiter { return mpicx.Gather(p.Comm, ints(2000), ints(2000*n), 0) }},
		{"Gatherv(root 1, float64)", func(p place) waiter { return mpicx.Gatherv(p.Comm, f(1), f(n), ones, 1) }},
		{"GatherValue(root 0)", func(p place) waiter { return mpicx.GatherValue(p.Comm, "a", 0) }},
		{"Scatter(root 1, 1 × float64)", func(p place) waiter { return mpicx.Scatter(p.Comm, f(n), f(1), 1) }},
		{"Scatterv(root 0, float64)", func(p place) waiter { return mpicx.Scatterv(p.Comm, f(n), ones, f(1), 0) }},
		{"ScatterValue(root 1)", func(p place) waiter { return mpicx.ScatterValue(p.Comm, make([]string, n), 1) }},
		{"Allgather(1 × float64)", func(p place) waiter { return mpicx.Allgather(p.Comm, f(1), f(n)) }},
		{"Allgatherv(float64)", func(p place) waiter { return mpicx.Allgatherv(p.Comm, f(1), f(n), ones) }},
		{"AllgatherValue", func(p place) waiter { return mpicx.AllgatherValue(p.Comm, "a") }},
		{fmt.Sprintf("Alltoall(%d × float64)", n), func(p place) waiter { return mpicx.Alltoall(p.Comm, f(n), f(n)) }},
		{"Alltoallv(float64)", func(p place) waiter { return mpicx.Alltoallv(p.Comm, f(n), ones, f(n), ones) }},
		{fmt.Sprintf("ReduceScatter(Sum, %d × float64)", n), func(p place) waiter {
			return mpicx.ReduceScatter(p.Comm, f(n), f(1), ones, mpicx.Sum)
		}},
		{fmt.Sprintf("ReduceScatterBlock(Sum, %d × float64)", n), func(p place) waiter {
			return mpicx.ReduceScatterBlock(p.Comm, f(n), f(1), mpicx.Sum)
		}},
		{fmt.Sprintf("ReduceScatterFunc(%d × float64)", n), func(p place) waiter { return mpicx.ReduceScatterFunc(p.Comm, f(n), f(1), ones, sum) }},
		{fmt.Sprintf("ReduceScatterBlockFunc(%d × float64)", n), func(p place) waiter {
			return mpicx.ReduceScatterBlockFunc(p.Comm, f(n), f(1), sum)
		}},
		{"Scan(Sum, 3 × float64)", func(p place) waiter { return mpicx.Scan(p.Comm, f(3), f(3), mpicx.Sum) }},
		{"ScanFunc(3 × float64)", func(p place) waiter { return mpicx.ScanFunc(p.Comm, f(3), f(3), sum) }},
		{"ScanValue(float64)", func(p place) waiter { return mpicx.ScanValue(p.Comm, 1.0, sum) }},
		{"Exscan(Sum, 3 × float64)", func(p place) waiter { return mpicx.Exscan(p.Comm, f(3), f(3), mpicx.Sum) }},
		{"ExscanFunc(3 × float64)", func(p place) waiter { return mpicx.ExscanFunc(p.Comm, f(3), f(3), sum) }},
		{"ExscanValue(float64)", func(p place) waiter { return mpicx.ExscanValue(p.Comm, 1.0, sum) }},
		{"BcastValue(root 0)", func(p place) waiter { return mpicx.BcastValue(p.Comm, "a", 0) }},
		{"Dup", func(p place) waiter { return p.Dup() }},
		{"Split", func(p place) waiter { return p.Split(0, 0) }},
		{"SplitShared", func(p place) waiter { return p.SplitShared(0) }},
		{"Create", func(p place) waiter { return p.Create(nil) }},
		{"CartCreate", func(p place) waiter { return mpicx.CartCreate(p.Comm, []int{n}, nil) }},
		{"GraphCreate", func(p place) waiter { return mpicx.GraphCreate(p.Comm, nil, nil) }},
		{"CreateIntercomm", func(p place) waiter { return mpicx.CreateIntercomm(p.Comm, 0, p.Comm, n-1, 0) }},
		{"Fprintf", func(p place) waiter {
			return blocking(func(ctx context.Context) error { return p.Fprintf(ctx, io.Discard, "a") })
		}},
		{"TryAll", func(p place) waiter {
			return blocking(func(ctx context.Context) error { return p.TryAll(ctx, succeeds) })
		}},
		{"Close", func(p place) waiter { return blocking(p.Close) }},
	}
}

// neighborly are the calls with neighbours: a rank has from sources and to destinations.
func neighborly(from, to int) []callee {
	f := func(k int) []float64 { return make([]float64, k) }
	ones := func(k int) []int { return slices.Repeat([]int{1}, k) }
	return []callee{
		{"NeighborAllgather(1 × float64)", func(p place) waiter { return mpicx.NeighborAllgather(p.near, f(1), f(from)) }},
		{"NeighborAllgatherv(float64)", func(p place) waiter { return mpicx.NeighborAllgatherv(p.near, f(1), f(from), ones(from)) }},
		{"NeighborAlltoall(float64)", func(p place) waiter { return mpicx.NeighborAlltoall(p.near, f(to), f(from)) }},
		{"NeighborAlltoallv(float64)", func(p place) waiter { return mpicx.NeighborAlltoallv(p.near, f(to), ones(to), f(from), ones(from)) }},
	}
}

// inGrids are all calls that the n ranks of a periodic grid of one dimension can make.
func inGrids(n int) []callee {
	return append(slices.Concat(callees(n), neighborly(2, 2)),
		callee{"CartSub", func(p place) waiter { return p.grid.Sub(true) }},
		callee{"NewHalo", func(p place) waiter { return mpicx.NewHalo[float64](p.grid, []int{4}, 1, false) }})
}

var exchanged = callee{"Halo(float64)", func(p place) waiter { return p.halo.Start(make([]float64, p.halo.Len())) }}

// inUnions are all calls that the ranks of a union of two groups can make.
func inUnions(n int) []callee {
	return append(callees(n), callee{"Merge", func(p place) waiter { return p.inter.Merge(false) }})
}

// grid makes a periodic grid of one dimension.
func grid(ctx context.Context, world *mpicx.Comm) (place, error) {
	g := mpicx.CartCreate(world, []int{world.Size()}, []bool{true}).MustGet(ctx)
	return place{Comm: g.Comm, near: g, grid: g}, nil
}

// withHalo is grid, and one call in it.
func withHalo(ctx context.Context, world *mpicx.Comm) (p place, err error) {
	p, _ = grid(ctx, world)
	p.halo, err = mpicx.NewHalo[float64](p.grid, []int{4}, 1, false).Get(ctx)
	return p, err
}

// toZero makes a communicator in which all others send to rank 0, and it to nobody.
func toZero(ctx context.Context, world *mpicx.Comm) (place, error) {
	from, to := numbers(world.Size()-1, 1), []int(nil)
	if world.Rank() > 0 {
		from, to = nil, []int{0}
	}
	g := mpicx.GraphCreate(world, from, to).MustGet(ctx)
	return place{Comm: g.Comm, near: g}, nil
}

// union makes a communicator of two groups: rank 0, and the others.
func union(ctx context.Context, world *mpicx.Comm) (place, error) {
	local, bridge, remoteLeader := beside(ctx, world, 1)
	ic := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 0).MustGet(ctx)
	return place{Comm: ic.Union(), inter: ic}, nil
}

// Every collective operation that a fault plan may name is found by that name.
func TestPlansFindCollectives(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	calls := map[string]callee{"Halo": exchanged}
	for _, call := range slices.Backward(append(inGrids(2), inUnions(2)...)) {
		name, _, _ := strings.Cut(call.text, "(")
		calls[name] = call
	}
	for _, name := range plans.Collectives {
		setUp, deaths := withHalo, 0
		if name == "Merge" {
			setUp = union
		}
		for k := 1; k <= 3; k++ {
			deaths += len(mpicxtest.RunFaults(t, 2, fmt.Sprintf("kill 1 in %s step %d call 2", name, k), func(ctx context.Context, world *mpicx.Comm) error {
				world.SetErrhandler(mpicx.ErrorsReturn)
				p, err := setUp(ctx, world)
				_ = calls[name].begin(p).Wait(ctx)
				_ = calls[name].begin(p).Wait(ctx) // the survivor's may fail
				return err
			}))
		}
		require.NotZero(t, deaths, name)
	}
}
