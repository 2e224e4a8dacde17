package mpicx_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// badCalls are calls of three ranks whose arguments are good, or bad at rank 1 alone. All others need rank 1. The group
// is wider than their communicator.
func badCalls(wider *mpicx.Group) map[string]func(p place, bad bool) future.Waiter {
	const n, long = 3, 100_000
	f := func(n int) []float64 { return make([]float64, n) }
	plus := func(k int, bad bool) int {
		if bad {
			k++
		}
		return k
	}
	counts := func(k int, bad bool) []int { return []int{plus(k, bad), k, k} }
	return map[string]func(p place, bad bool) future.Waiter{
		"NewHalo": func(p place, bad bool) future.Waiter {
			return mpicx.NewHalo[int](p.grid, []int{plus(0, !bad)}, 1, false)
		},
		"Halo":           func(p place, bad bool) future.Waiter { return p.halo.Start(f(plus(p.halo.Len(), bad))) },
		"Gather of long": func(p place, bad bool) future.Waiter { return mpicx.Gather(p.Comm, f(long), f(plus(n*long, bad)), 1) },
		"Gatherv of long": func(p place, bad bool) future.Waiter {
			return mpicx.Gatherv(p.Comm, f(long), f(n*long), counts(long, bad), 1)
		},
		"Scatter":      func(p place, bad bool) future.Waiter { return mpicx.Scatter(p.Comm, f(plus(n, bad)), f(1), 1) },
		"Scatterv":     func(p place, bad bool) future.Waiter { return mpicx.Scatterv(p.Comm, f(n), counts(1, bad), f(1), 1) },
		"ScatterValue": func(p place, bad bool) future.Waiter { return mpicx.ScatterValue(p.Comm, f(plus(n, bad)), 1) },
		"BcastValue": func(p place, bad bool) future.Waiter {
			return mpicx.BcastValue(p.Comm, []any{1, func() {}}[:plus(1, bad)], 1)
		},
		"Allgatherv": func(p place, bad bool) future.Waiter {
			return mpicx.Allgatherv(p.Comm, f(plus(1, bad)), f(n), counts(1, false))
		},
		"Alltoallv": func(p place, bad bool) future.Waiter {
			return mpicx.Alltoallv(p.Comm, f(n), counts(1, bad), f(n), counts(1, false))
		},
		"ReduceScatter": func(p place, bad bool) future.Waiter {
			return mpicx.ReduceScatter(p.Comm, f(n), f(plus(1, bad)), counts(1, false), mpicx.Sum)
		},
		"NeighborAllgatherv": func(p place, bad bool) future.Waiter {
			return mpicx.NeighborAllgatherv(p.near, f(1), f(plus(2, bad)), []int{1, 1})
		},
		"NeighborAlltoall": func(p place, bad bool) future.Waiter { return mpicx.NeighborAlltoall(p.near, f(plus(2, bad)), f(2)) },
		"NeighborAlltoallv": func(p place, bad bool) future.Waiter {
			return mpicx.NeighborAlltoallv(p.near, f(2), []int{1, plus(1, bad)}, f(2), []int{1, 1})
		},
		"Split":             func(p place, bad bool) future.Waiter { return p.Split(-7*plus(0, bad), 0) },
		"Create":            func(p place, bad bool) future.Waiter { return p.Create([]*mpicx.Group{p.Group(), wider}[plus(0, bad)]) },
		"CartCreate":        func(p place, bad bool) future.Waiter { return mpicx.CartCreate(p.Comm, []int{plus(n, bad)}, nil) },
		"CartSub":           func(p place, bad bool) future.Waiter { return p.grid.Sub(make([]bool, plus(1, bad))...) },
		"GraphCreate":       func(p place, bad bool) future.Waiter { return mpicx.GraphCreate(p.Comm, nil, []int{99}[:plus(0, bad)]) },
		"GraphCreate of -1": func(p place, bad bool) future.Waiter { return mpicx.GraphCreate(p.Comm, []int{-1}[:plus(0, bad)], nil) },
	}
}

// Arguments that differ between ranks may be bad at one alone. It has the error, and the ranks that need it have one
// too, even if no program tells another one.
func TestBadAtOneRank(t *testing.T) {
	program := func(ctx context.Context, world *mpicx.Comm) error {
		c, err := world.Split(world.Rank()/3, 0).Get(ctx)
		if err != nil {
			return err
		}
		calls := badCalls(world.Group())
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if c.Size() == 3 {
				p, err := withHalo(ctx, c)
				if err != nil {
					return err
				}
				err = calls[name](p, c.Rank() == 1).Wait(ctx)
				if e, ok := err.(*mpicx.MPIError); !ok || c.Rank() != 1 && !strings.Contains(e.Text, "rank 1") {
					return fmt.Errorf("%s at rank %d: %w", name, c.Rank(), err)
				}
			}
			if err := world.Barrier().Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	t.Run("goroutines", func(t *testing.T) { mpicxtest.Run(t, 4, program) })
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 4, program) })
}
