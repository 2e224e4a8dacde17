package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// H9: Run waits for the collective calls that a rank has begun, with either backend: its peers get
// their results, and no error.
func TestBegunCallsComplete(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for seed := range uint64(200) {
			require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				return beginCalls(ctx, world, seed)
			}, mpicx.WithRanks(2+int(seed)%7), backend), "seed %d", seed)
		}
	})
}

// beginCalls begins some calls, the same at all ranks, and waits for some of them.
func beginCalls(ctx context.Context, world *mpicx.Comm, seed uint64) error {
	n, ints := world.Size(), make([]int, 9000)
	begin := []func(c *mpicx.Comm) waiter{
		func(c *mpicx.Comm) waiter { return c.Barrier() },
		func(c *mpicx.Comm) waiter { return mpicx.Bcast(c, make([]byte, 1<<17), n-1) },
		func(c *mpicx.Comm) waiter { return mpicx.Reduce(c, []int{1}, []int{0}, mpicx.Sum, n/2) },
		func(c *mpicx.Comm) waiter { return mpicx.Allreduce(c, ints, make([]int, 9000), mpicx.Sum) },
		func(c *mpicx.Comm) waiter { return mpicx.Allgather(c, []int{1}, make([]int, n)) },
	}
	comms := []*mpicx.Comm{world, world.Dup().MustGet(ctx)}
	calls, waits := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1+uint64(world.Rank())))
	for range 1 + calls.IntN(20) {
		f := begin[calls.IntN(len(begin))](comms[calls.IntN(2)])
		if waits.IntN(3) == 0 {
			mpicx.Throw(f.Wait(ctx))
		}
	}
	return nil
}

// A function that fails in a call for which its rank waits in Run: that is the rank's error, and
// its peers do not wait for the result.
func TestFunctionFailsInBegunCall(t *testing.T) {
	oneProcess(t)
	ways := []struct {
		fail func(c *mpicx.Comm)
		want string
	}{
		{func(*mpicx.Comm) { panic("no sum") }, "no sum"},
		{func(*mpicx.Comm) { runtime.Goexit() }, "Goexit"},
		{func(c *mpicx.Comm) { c.Barrier() }, "Barrier"},
		{func(c *mpicx.Comm) { _ = mpicx.Recv(c, []int{0}, 1, 0).Wait(context.Background()) }, "waits for an operation"},
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for way, late := range product(ways, []bool{false, true}) {
			err := failsInBegunCall(t, backend, way.fail, late)
			require.ErrorContains(t, err, "rank 0: ")
			require.ErrorContains(t, err, way.want)
			if way.want == "no sum" {
				p, _ := errors.AsType[*mpicx.PanicError](err)
				require.Equal(t, []any{0, "no sum"}, []any{p.Rank, p.Value})
			}
			c, _ := errors.AsType[*mpicx.CommCorruptedError](err)
			for _, f := range c.Failures {
				require.Contains(t, f.Message, way.want)
			}
		}
	})
}

// failsInBegunCall runs a job in which rank 0's function of a reduction fails while the rank waits
// in Run. Late: it is called only when the rank has returned.
func failsInBegunCall(t *testing.T, backend mpicx.Option, fail func(c *mpicx.Comm), late bool) error {
	returned, called := make(chan struct{}), make(chan struct{})
	return mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() > 0 && late {
			<-returned
		}
		f := mpicx.AllreduceFunc(world, []int{1}, []int{0}, func(a, b int) int {
			if world.Rank() == 0 {
				defer close(called)
				fail(world)
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
}

// H9: a call that a rank never makes is a wrong program. A rank that waits for it is told, in Wait
// or in Run, and so is a rank in a call that another one leaves for that reason.
func TestCallThatOneNeverMakes(t *testing.T) {
	oneProcess(t)
	begin := map[string]func(c *mpicx.Comm) waiter{
		"Barrier":        func(c *mpicx.Comm) waiter { return c.Barrier() },
		"Allreduce":      func(c *mpicx.Comm) waiter { return mpicx.Allreduce(c, make([]int, 9000), make([]int, 9000), mpicx.Sum) },
		"AllgatherValue": func(c *mpicx.Comm) waiter { return mpicx.AllgatherValue(c, "a") },
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for n, never := range product([]int{2, 3, 4}, indices(4)) {
			for name, begin := range begin {
				if never < n {
					neverMade(t, backend, name, begin, n, never)
				}
			}
		}
	})
}

// neverMade has all of n ranks but one begin a call, without a Wait and with one.
func neverMade(t *testing.T, backend mpicx.Option, name string, begin func(c *mpicx.Comm) waiter, n, never int) {
	text := fmt.Sprintf("rank %d has returned", never)
	for _, waits := range []bool{false, true} {
		told := make([]error, n)
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == never {
				return nil
			}
			if f := begin(world); waits {
				told[world.Rank()] = f.Wait(ctx)
			}
			return nil
		}, mpicx.WithRanks(n), backend)
		if !waits {
			require.ErrorContains(t, err, name+": "+text, "%d ranks", n)
			continue
		}
		require.NoError(t, err, "all were told")
		require.ErrorContains(t, errors.Join(told...), text, "%s, %d ranks", name, n)
		for r, err := range told {
			require.True(t, r == never || err != nil && strings.Contains(err.Error(), "has returned"), "%s, %d ranks, rank %d: %v", name, n, r, err)
		}
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
