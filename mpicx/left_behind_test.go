package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A rank that returns completes the collective calls that it has begun, with either backend: its peers get their
// results, and no error.
func TestCallsThatAreLeftComplete(t *testing.T) {
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

// A function that fails in a call which its rank has left: that is the rank's error, and its peers do not wait for the
// result.
func TestFunctionFailsInCallThatIsLeft(t *testing.T) {
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

// A rank that returns while a call of it is under way is dead for those who need more of it than the call, or if the
// call has failed at it.
func TestRankThatHasLeftCallIsNeeded(t *testing.T) {
	oneProcess(t)
	for name, need := range map[string]func(ctx context.Context, c *mpicx.Comm) error{
		"a message":    func(ctx context.Context, c *mpicx.Comm) error { return mpicx.Recv(c, make([]int, 1), 0, 0).Wait(ctx) },
		"another call": func(ctx context.Context, c *mpicx.Comm) error { return c.Barrier().Wait(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				world.Barrier()
				if world.Rank() == 0 {
					return nil
				}
				if err := need(ctx, world); !errors.As(err, new(*mpicx.CommCorruptedError)) {
					return fmt.Errorf("rank %d: %w", world.Rank(), err)
				}
				return nil
			}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("ulfm"))
			require.NoError(t, err)
		})
	}
}
