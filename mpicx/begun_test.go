package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// H9: Run waits for the collective calls that a rank has begun, with either backend: its peers get their results, and
// no error.
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
			err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				dup, err := world.Dup().Get(ctx)
				if err != nil {
					return err
				}
				calls := rand.New(rand.NewPCG(seed, 0)) // the same at all ranks
				waits := rand.New(rand.NewPCG(seed, 1+uint64(world.Rank())))
				for range 1 + calls.IntN(20) {
					on := []*mpicx.Comm{world, dup}[calls.IntN(2)]
					f := begin[calls.IntN(len(begin))](on)
					if waits.IntN(3) == 0 {
						if err := f.Wait(ctx); err != nil {
							return err
						}
					}
				}
				return nil
			}, mpicx.WithRanks(n), backend)
			require.NoError(t, err, "seed %d, %d ranks", seed, n)
		}
	})
}

type waiter interface{ Wait(context.Context) error }

// A function that fails in a call for which its rank waits in Run: that is the rank's error, and its peers do not wait
// for the result.
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
		for _, way := range ways {
			for _, late := range []bool{false, true} { // the function is called when its rank has returned
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
		for _, n := range []int{2, 3, 5} {
			for i, zero := range begunCalls {
				for j, others := range begunCalls {
					err := mpicx.Run(context.Background(), func(_ context.Context, world *mpicx.Comm) error {
						if world.Rank() == 0 {
							zero.begin(world)
						} else {
							others.begin(world)
						}
						return nil
					}, mpicx.WithRanks(n), backend)
					if i == j {
						assert.NoError(t, err)
					} else if strings.HasSuffix(t.Name(), "ulfm") && (zero.text == "Dup" || others.text == "Dup") {
						assert.ErrorContains(t, err, "Dup", "%s and %s, %d ranks", zero.text, others.text, n) // perhaps that a rank has returned
					} else if assert.Error(t, err, "%s and %s, %d ranks", zero.text, others.text, n) {
						assert.ErrorContains(t, err, zero.text+" at rank 0, "+others.text+" at rank")
					}
				}
			}
		}
	})
}

// H9: a call that a rank never makes is a wrong program. A rank that waits for it is told, in Wait or in Run, and so is
// one that is in a call which another one leaves for that reason.
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
					for _, waits := range []bool{true, false} {
						told := make([]error, n)
						err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
							if world.Rank() == never {
								return nil
							}
							f := begin(world)
							if waits {
								told[world.Rank()] = f.Wait(ctx)
							}
							return nil
						}, mpicx.WithRanks(n), backend)
						text := fmt.Sprintf("rank %d has returned", never)
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
			}
		}
	})
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

// A rank that waits in Run takes part in errors, which end what it has begun.
func TestErrorsEndBegunCalls(t *testing.T) {
	oneProcess(t)
	for name, fail := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"Signal": func(ctx context.Context, world *mpicx.Comm) error {
			if err := world.SignalError(ctx, 7); !is[*mpicx.PropagatedError](err) {
				return fmt.Errorf("got %w", err)
			}
			return nil
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
