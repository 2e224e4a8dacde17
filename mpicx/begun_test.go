package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// H9: Run waits for the collective calls that a rank has begun, with either backend: its peers get
// their results, and no error.
func TestBegunCallsComplete(t *testing.T) {
	oneProcess(t)
	begin := []func(c *mpicx.Comm) waiter{
		func(c *mpicx.Comm) waiter { return c.Barrier() },
		func(c *mpicx.Comm) waiter { return mpicx.Bcast(c, make([]byte, 1<<17), c.Size()-1) },
		func(c *mpicx.Comm) waiter { return mpicx.Reduce(c, []int{1}, []int{0}, mpicx.Sum, c.Size()/2) },
		func(c *mpicx.Comm) waiter { return mpicx.Allreduce(c, make([]int, 9000), make([]int, 9000), mpicx.Sum) },
		func(c *mpicx.Comm) waiter { return mpicx.Allgather(c, []int{1}, make([]int, c.Size())) },
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for seed := range uint64(200) {
			n := 2 + int(seed)%7
			require.NoError(t, mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				dup := world.Dup().MustGet(ctx)
				calls := rand.New(rand.NewPCG(seed, 0)) // the same at all ranks
				waits := rand.New(rand.NewPCG(seed, 1+uint64(world.Rank())))
				for range 1 + calls.IntN(20) {
					on := []*mpicx.Comm{world, dup}[calls.IntN(2)]
					f := begin[calls.IntN(len(begin))](on)
					if waits.IntN(3) == 0 {
						mpicx.Throw(f.Wait(ctx))
					}
				}
				return nil
			}, mpicx.WithRanks(n), backend), "seed %d, %d ranks", seed, n)
		}
	})
}

type waiter interface{ Wait(context.Context) error }

// A function that fails in a call for which its rank waits in Run: that is the rank's error, and
// its peers do not wait for the result.
func TestFunctionFailsInBegunCall(t *testing.T) {
	oneProcess(t)
	ways := []struct {
		name string
		fail func(c *mpicx.Comm)
		want string
	}{
		{"panics", func(*mpicx.Comm) { panic("no sum") }, "no sum"},
		{"ends its goroutine", func(*mpicx.Comm) { runtime.Goexit() }, "Goexit"},
		{"begins a call", func(c *mpicx.Comm) { c.Barrier() }, "Barrier"},
		{"waits", func(c *mpicx.Comm) { _ = mpicx.Recv(c, []int{0}, 1, 0).Wait(context.Background()) }, "waits for an operation"},
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for way, late := range product(ways, []bool{false, true}) { // the function is called when its rank has returned
			t.Run(fmt.Sprintf("%s, late %t", way.name, late), func(t *testing.T) {
				returned, called := make(chan struct{}), make(chan struct{})
				err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
					if world.Rank() > 0 && late {
						<-returned
					}
					f := mpicx.AllreduceFunc(world, []int{1}, []int{0}, func(a, b int) int {
						if world.Rank() == 0 {
							defer close(called)
							way.fail(world)
						}
						return a + b
					})
					if world.Rank() > 0 {
						return f.Wait(ctx)
					}
					if !late {
						<-called
					}
					close(returned)
					return nil
				}, mpicx.WithRanks(4), backend)
				require.ErrorContains(t, err, "rank 0: ")
				assert.ErrorContains(t, err, way.want)
				var p *mpicx.PanicError
				if way.name == "panics" && assert.ErrorAs(t, err, &p) {
					assert.Equal(t, 0, p.Rank)
					assert.Equal(t, "no sum", p.Value)
				}
				var c *mpicx.CommCorruptedError
				require.ErrorAs(t, err, &c)
				for _, f := range c.Failures {
					assert.Contains(t, f.Message, way.want)
				}
			})
		}
	})
}

// A begunCall is a call that a program begins, and does not wait for.
type begunCall struct {
	text  string
	begin func(c *mpicx.Comm)
}

// No two of them fit.
var begunCalls = []begunCall{
	{"Barrier", func(c *mpicx.Comm) { c.Barrier() }},
	{"Bcast(root 0, 1 × int)", func(c *mpicx.Comm) { mpicx.Bcast(c, []int{0}, 0) }},
	{"Reduce(Sum, root 0, 1 × int)", func(c *mpicx.Comm) { mpicx.Reduce(c, []int{0}, []int{0}, mpicx.Sum, 0) }},
	{"Reduce(Sum, root 1, 1 × int)", func(c *mpicx.Comm) { mpicx.Reduce(c, []int{0}, []int{0}, mpicx.Sum, 1) }},
	{"Allreduce(Sum, 1 × int)", func(c *mpicx.Comm) { mpicx.Allreduce(c, []int{0}, []int{0}, mpicx.Sum) }},
	{"Allreduce(Max, 1 × int)", func(c *mpicx.Comm) { mpicx.Allreduce(c, []int{0}, []int{0}, mpicx.Max) }},
	{"GatherValue(root 0)", func(c *mpicx.Comm) { mpicx.GatherValue(c, "a", 0) }},
	{"Dup", func(c *mpicx.Comm) { c.Dup() }},
}

// M3: different calls are reported even if no program waits for either.
func TestMismatchOfBegunCalls(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for zero, others := range product(begunCalls, begunCalls) {
			for _, n := range []int{2, 3, 5} {
				err := mpicx.Run(context.Background(), func(_ context.Context, world *mpicx.Comm) error {
					call := others
					if world.Rank() == 0 {
						call = zero
					}
					call.begin(world)
					return nil
				}, mpicx.WithRanks(n), backend)
				what := fmt.Sprintf("%s and %s, %d ranks", zero.text, others.text, n)
				switch {
				case zero.text == others.text:
					assert.NoError(t, err, what)
				case strings.HasSuffix(t.Name(), "ulfm") && (zero.text == "Dup" || others.text == "Dup"):
					assert.ErrorContains(t, err, "Dup", what) // perhaps that a rank has returned
				default:
					assert.ErrorContains(t, err, zero.text+" at rank 0, "+others.text+" at rank", what)
				}
			}
		}
	})
}

// H9: a call that a rank never makes is a wrong program. A rank that waits for it is told, in Wait
// or in Run, and so is one that is in a call which another one leaves for that reason.
func TestCallThatOneNeverMakes(t *testing.T) {
	oneProcess(t)
	calls := map[string]func(c *mpicx.Comm) waiter{
		"Barrier":        func(c *mpicx.Comm) waiter { return c.Barrier() },
		"Allreduce":      func(c *mpicx.Comm) waiter { return mpicx.Allreduce(c, make([]int, 9000), make([]int, 9000), mpicx.Sum) },
		"AllgatherValue": func(c *mpicx.Comm) waiter { return mpicx.AllgatherValue(c, "a") },
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for name, begin := range calls {
			for n := 2; n <= 4; n++ {
				for never := range n {
					neverMade(t, backend, name, begin, n, never)
				}
			}
		}
	})
}

// neverMade has all of n ranks but one begin a call, with and without a Wait.
func neverMade(t *testing.T, backend mpicx.Option, name string, begin func(c *mpicx.Comm) waiter, n, never int) {
	text := fmt.Sprintf("rank %d has returned", never)
	for _, waits := range []bool{true, false} {
		told := make([]error, n)
		err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == never {
				return nil
			}
			if f := begin(world); waits {
				told[world.Rank()] = f.Wait(ctx)
			}
			return nil
		}, mpicx.WithRanks(n), backend)
		if !waits {
			assert.ErrorContains(t, err, name+": "+text, "%d ranks", n)
			continue
		}
		assert.NoError(t, err, "all were told")
		told[never] = errors.New(text)
		for r, err := range told {
			assert.ErrorContains(t, err, "has returned", "%s, %d ranks, rank %d", name, n, r)
		}
		assert.Contains(t, errors.Join(slices.Delete(told, never, never+1)...).Error(), text, "%s, %d ranks", name, n)
	}
}

// Where a rank waits in Run and another one for that rank, the context's end ends both.
func TestRunWaitsUntilContextEnds(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 0 {
					world.Barrier()
					return nil
				}
				return mpicx.Recv(world, []int{0}, 0, 5).Wait(context.Background())
			}, mpicx.WithRanks(2), backend, diagnosesTo(io.Discard))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "Barrier")
		})
	})
}

// A rank whose program has returned, and for which Run waits, takes part in errors. They end its
// pending calls.
func TestErrorsEndBegunCalls(t *testing.T) {
	oneProcess(t)
	for name, fail := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"Signal": func(ctx context.Context, world *mpicx.Comm) error {
			return isA[*mpicx.PropagatedError](world.SignalError(ctx, 7))
		},
		"Guard": func(ctx context.Context, world *mpicx.Comm) error {
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("bad input") })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBackends(t, 3, func(ctx context.Context, _ string, world *mpicx.Comm) error {
				if world.Rank() > 0 {
					world.Barrier()
					return nil
				}
				synctest.Wait()
				return fail(ctx, world)
			})
		})
	}
}

// badCalls are calls of three ranks whose arguments are good, or bad at rank 1 alone. All others
// need rank 1. The group is wider than their communicator.
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

// Arguments that differ between ranks may be bad at one alone. It has the error, and the ranks that
// need it have one too, even if no program tells another one.
func TestBadAtOneRank(t *testing.T) {
	program := func(ctx context.Context, world *mpicx.Comm) error {
		c := world.Split(world.Rank()/3, 0).MustGet(ctx)
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
			world.Barrier().MustWait(ctx)
		}
		return nil
	}
	t.Run("goroutines", func(t *testing.T) { mpicxtest.Run(t, 4, program) })
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 4, program) })
}
