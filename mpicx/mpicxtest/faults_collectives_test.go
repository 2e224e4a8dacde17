package mpicxtest_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/fault"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Every collective that a plan may name is found by that name.
func TestCollectives(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	require.Len(t, collectives, len(fault.Collectives))
	for _, name := range fault.Collectives {
		deaths := 0
		for k := 1; k <= 3; k++ {
			deaths += len(mpicxtest.RunFaults(t, 2, fmt.Sprintf("kill 1 in %s step %d call 2", name, k), func(ctx context.Context, world *mpicx.Comm) error {
				world.SetErrhandler(mpicx.ErrorsReturn)
				for range 2 {
					_ = caught(func() { collectives[name](world).Wait(ctx) }) // the survivor's may fail
				}
				return nil
			}))
		}
		require.NotZero(t, deaths, name)
	}
}

func add(a, b int) int { return a + b }

// ints returns a buffer.
func ints(length int) []int { return make([]int, length) }

var ones = []int{1, 1}

// onGrid calls fn on a line of all ranks.
func onGrid(fn func(*mpicx.Cart) future.Waiter) func(*mpicx.Comm) future.Waiter {
	return func(c *mpicx.Comm) future.Waiter {
		c.SetErrhandler(mpicx.ErrorsReturn)
		return fn(mpicx.CartCreate(c, []int{c.Size()}, nil).MustGet(context.Background()))
	}
}

// merged makes an Intercomm of two ranks, and merges it.
func merged(c *mpicx.Comm) future.Waiter {
	own := c.Split(c.Rank(), 0).MustGet(context.Background())
	ic := mpicx.CreateIntercomm(own, 0, c, 1-c.Rank(), 1).MustGet(context.Background())
	return ic.Merge(c.Rank() > 0)
}

// halo makes a Halo, and uses it.
func halo(g *mpicx.Cart) future.Waiter {
	h := mpicx.NewHalo[int](g, []int{1}, 1, false).MustGet(context.Background())
	return h.Start(ints(3))
}

var collectives = map[string]func(c *mpicx.Comm) future.Waiter{
	"Barrier":                func(c *mpicx.Comm) future.Waiter { return c.Barrier() },
	"Bcast":                  func(c *mpicx.Comm) future.Waiter { return mpicx.Bcast(c, ints(1), 0) },
	"BcastValue":             func(c *mpicx.Comm) future.Waiter { return mpicx.BcastValue(c, 1, 0) },
	"Reduce":                 func(c *mpicx.Comm) future.Waiter { return mpicx.Reduce(c, ints(1), ints(1), mpicx.Sum, 0) },
	"ReduceFunc":             func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceFunc(c, ints(1), ints(1), add, 0) },
	"ReduceValue":            func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceValue(c, 1, add, 0) },
	"Allreduce":              func(c *mpicx.Comm) future.Waiter { return mpicx.Allreduce(c, ints(1), ints(1), mpicx.Sum) },
	"AllreduceFunc":          func(c *mpicx.Comm) future.Waiter { return mpicx.AllreduceFunc(c, ints(1), ints(1), add) },
	"AllreduceValue":         func(c *mpicx.Comm) future.Waiter { return mpicx.AllreduceValue(c, 1, add) },
	"ReduceScatterBlock":     func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatterBlock(c, ints(2), ints(1), mpicx.Sum) },
	"ReduceScatterBlockFunc": func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatterBlockFunc(c, ints(2), ints(1), add) },
	"ReduceScatter":          func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatter(c, ints(2), ints(1), ones, mpicx.Sum) },
	"ReduceScatterFunc":      func(c *mpicx.Comm) future.Waiter { return mpicx.ReduceScatterFunc(c, ints(2), ints(1), ones, add) },
	"Scan":                   func(c *mpicx.Comm) future.Waiter { return mpicx.Scan(c, ints(1), ints(1), mpicx.Sum) },
	"ScanFunc":               func(c *mpicx.Comm) future.Waiter { return mpicx.ScanFunc(c, ints(1), ints(1), add) },
	"ScanValue":              func(c *mpicx.Comm) future.Waiter { return mpicx.ScanValue(c, 1, add) },
	"Exscan":                 func(c *mpicx.Comm) future.Waiter { return mpicx.Exscan(c, ints(1), ints(1), mpicx.Sum) },
	"ExscanFunc":             func(c *mpicx.Comm) future.Waiter { return mpicx.ExscanFunc(c, ints(1), ints(1), add) },
	"ExscanValue":            func(c *mpicx.Comm) future.Waiter { return mpicx.ExscanValue(c, 1, add) },
	"Gather":                 func(c *mpicx.Comm) future.Waiter { return mpicx.Gather(c, ints(1), ints(2), 0) },
	"GatherValue":            func(c *mpicx.Comm) future.Waiter { return mpicx.GatherValue(c, 1, 0) },
	"Gatherv":                func(c *mpicx.Comm) future.Waiter { return mpicx.Gatherv(c, ints(1), ints(2), ones, 0) },
	"Scatter":                func(c *mpicx.Comm) future.Waiter { return mpicx.Scatter(c, ints(2), ints(1), 0) },
	"ScatterValue":           func(c *mpicx.Comm) future.Waiter { return mpicx.ScatterValue(c, ints(2), 0) },
	"Scatterv":               func(c *mpicx.Comm) future.Waiter { return mpicx.Scatterv(c, ints(2), ones, ints(1), 0) },
	"Allgather":              func(c *mpicx.Comm) future.Waiter { return mpicx.Allgather(c, ints(1), ints(2)) },
	"AllgatherValue":         func(c *mpicx.Comm) future.Waiter { return mpicx.AllgatherValue(c, 1) },
	"Allgatherv":             func(c *mpicx.Comm) future.Waiter { return mpicx.Allgatherv(c, ints(1), ints(2), ones) },
	"Alltoall":               func(c *mpicx.Comm) future.Waiter { return mpicx.Alltoall(c, ints(2), ints(2)) },
	"Alltoallv":              func(c *mpicx.Comm) future.Waiter { return mpicx.Alltoallv(c, ints(2), ones, ints(2), ones) },
	"Fprintf": func(c *mpicx.Comm) future.Waiter {
		return future.Failed[int](c.Fprintf(context.Background(), io.Discard, ""))
	},
	"Split":       func(c *mpicx.Comm) future.Waiter { return c.Split(0, 0) },
	"SplitShared": func(c *mpicx.Comm) future.Waiter { return c.SplitShared(0) },
	"Create":      func(c *mpicx.Comm) future.Waiter { return c.Create(c.Group()) },
	"CartCreate":  func(c *mpicx.Comm) future.Waiter { return mpicx.CartCreate(c, []int{c.Size()}, nil) },
	"GraphCreate": func(c *mpicx.Comm) future.Waiter { return mpicx.GraphCreate(c, nil, nil) },
	"Merge":       merged,
	"CartSub":     onGrid(func(g *mpicx.Cart) future.Waiter { return g.Sub(true) }),
	"NewHalo":     onGrid(func(g *mpicx.Cart) future.Waiter { return mpicx.NewHalo[int](g, []int{1}, 1, false) }),
	"Halo":        onGrid(halo),
	"NeighborAllgather": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAllgather(g, ints(1), ints(2))
	}),
	"NeighborAllgatherv": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAllgatherv(g, ints(1), ints(2), ones)
	}),
	"NeighborAlltoall": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAlltoall(g, ints(2), ints(2))
	}),
	"NeighborAlltoallv": onGrid(func(g *mpicx.Cart) future.Waiter {
		return mpicx.NeighborAlltoallv(g, ints(2), ones, ints(2), ones)
	}),
}
