package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// hasReleased says that err is a corruption that names the rank which has released a communicator.
func hasReleased(err error, rank int) error {
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || !strings.Contains(c.Error(), fmt.Sprintf("rank %d has released world.", rank)) {
		return fmt.Errorf("got %w, expected a corruption, because rank %d has released the communicator", err, rank)
	}
	return nil
}

// A rank that releases a communicator waits for nobody. Whatever another rank waits for there, it is
// told who is missing.
func TestReleaseTellsThoseThatWait(t *testing.T) {
	for name, wait := range inOrder(map[string]func(c *mpicx.Comm) future.Waiter{
		"Barrier": func(c *mpicx.Comm) future.Waiter { return c.Barrier() },
		"Recv":    func(c *mpicx.Comm) future.Waiter { return mpicx.Recv(c, []int{0}, 1, 0) },
		"Probe":   func(c *mpicx.Comm) future.Waiter { return mpicx.Probe[int](c, 1, 0) },
		"Ssend":   func(c *mpicx.Comm) future.Waiter { return mpicx.Ssend(c, []int{0}, 1, 0) },
		"Split":   func(c *mpicx.Comm) future.Waiter { return c.Split(0, 0) },
		"Gather":  func(c *mpicx.Comm) future.Waiter { return mpicx.AllgatherValue(c, 1) },
	}) {
		t.Run(name, func(t *testing.T) {
			runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				c := dup(ctx, world)
				if world.Rank() == 1 {
					c.Release()
					return world.Barrier().Wait(ctx)
				}
				err := hasReleased(wait(c).Wait(ctx), 1)
				c.Release()
				return first(err, world.Barrier().Wait(ctx))
			})
		})
	}
}

// It tells them even if it waits without Wait.
func TestReleaseBeforeOtherWaits(t *testing.T) {
	answer := func(world *mpicx.Comm) future.Waiter { return mpicx.Recv(world, []int{0}, 0, 0) }
	for name, wait := range inOrder(map[string]func(world *mpicx.Comm){
		"Done": func(world *mpicx.Comm) { <-answer(world).Done() },
		"Test": func(world *mpicx.Comm) {
			for f, done := answer(world), false; !done; done, _ = f.Test() {
				runtime.Gosched()
			}
		},
	}) {
		t.Run(name, func(t *testing.T) {
			runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
				c := dup(ctx, world)
				if world.Rank() == 1 {
					c.Release()
					wait(world)
					return nil
				}
				err := hasReleased(c.Barrier().Wait(ctx), 1)
				return first(err, mpicx.Send(world, []int{0}, 1, 0).Wait(ctx))
			})
		})
	}
}

// That a rank has released a communicator is an error of that one alone, even if it ends operations
// on another.
func TestReleasedIsNoErrorOfTheParent(t *testing.T) {
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		pending := mpicx.Recv(world, []int{0}, 1-world.Rank(), 0)
		err := world.TryAll(ctx, func(ctx context.Context) error {
			c := dup(ctx, world)
			defer c.Release()
			if world.Rank() == 1 {
				return nil
			}
			return c.Barrier().Wait(ctx)
		})
		require.Error(t, err)
		_ = pending.Wait(ctx)
		return world.Barrier().Wait(ctx)
	})
}

// What a rank has sent before it releases a communicator is received, and what it has begun to
// receive is sent.
func TestReleaseLosesNothing(t *testing.T) {
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		c, long := dup(ctx, world), make([]int, 100_000)
		next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
		sent, received := mpicx.Send(c, long, next, 0), mpicx.Recv(c, make([]int, len(long)), before, 0)
		sum := mpicx.AllreduceValue(c, 1, func(a, b int) int { return a + b })
		c.Release()
		return first(world.Barrier().Wait(ctx), sent.Wait(ctx), received.Wait(ctx), sum.Wait(ctx))
	})
}

// An error that ends a scope in which Release is deferred is what all get, and nothing else.
func TestReleaseInAScope(t *testing.T) {
	runBothTimes(t, 10, 3, func(ctx context.Context, world *mpicx.Comm) error {
		for i := range 9 {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				c := world.Dup().MustGet(ctx)
				defer c.Release()
				if world.Rank() == i%3 {
					return fmt.Errorf("%d fails", i)
				}
				return []func() future.Waiter{
					func() future.Waiter { return c.Barrier() },
					func() future.Waiter { return c.Dup() },
					func() future.Waiter { return c.Agree(1) },
				}[i/3]().Wait(ctx)
			})
			mpicx.Throw(messagesAre(err, fmt.Sprintf("%d fails", i)))
		}
		return nil
	})
}

// Agreements end too, even if a communicator that was made from the one that is released lives.
func TestReleaseOfAParent(t *testing.T) {
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) (err error) {
		c := dup(ctx, world)
		child := dup(ctx, c)
		if c.Rank() == 1 {
			c.Release()
		} else if err := c.Agree(1).Wait(ctx); !corrupted(err) && !hasType[*mpicx.MPIError](err) {
			return fmt.Errorf("got %w, expected that rank 1 has released the communicator", err)
		}
		if err := child.Barrier().Wait(ctx); !corrupted(err) {
			return fmt.Errorf("got %w, expected a corruption, as of the parent", err)
		}
		return world.Barrier().Wait(ctx)
	})
}

// A panic that passes a deferred Release or Close, or a Try in which a communicator was made,
// corrupts that, and continues. So nobody waits for the rank there when it is recovered further up.
func TestAPanicPassesACommunicator(t *testing.T) {
	for name, step := range inOrder(map[string]func(ctx context.Context, world *mpicx.Comm, work func(*mpicx.Comm) error) error{
		"Release": func(ctx context.Context, world *mpicx.Comm, work func(*mpicx.Comm) error) error {
			c := world.Dup().MustGet(ctx)
			defer c.Release()
			return work(c)
		},
		"Close": func(ctx context.Context, world *mpicx.Comm, work func(*mpicx.Comm) error) error {
			c := world.Dup().MustGet(ctx)
			defer c.Close(ctx)
			return work(c)
		},
		"Close of an Intercomm": func(ctx context.Context, world *mpicx.Comm, work func(*mpicx.Comm) error) error {
			side := min(world.Rank(), 1)
			ic := mpicx.CreateIntercomm(world.Split(side, 0).MustGet(ctx), 0, world, 1-side, 0).MustGet(ctx)
			defer ic.Close(ctx)
			return work(ic.Union())
		},
		"Try": func(ctx context.Context, world *mpicx.Comm, work func(*mpicx.Comm) error) (err error) {
			if err := world.Try(ctx, func(ctx context.Context) error {
				err = work(world.Dup().MustGet(ctx))
				return nil
			}); err != nil {
				return err
			}
			return err
		},
	}) {
		t.Run(name, func(t *testing.T) {
			runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				var caught any
				err := func() error {
					defer func() { caught = recover() }()
					return step(ctx, world, func(c *mpicx.Comm) error {
						if c.Rank() == 1 {
							panic("a bug")
						}
						return c.Barrier().Wait(ctx)
					})
				}()
				if world.Rank() == 1 {
					require.Equal(t, "a bug", caught)
				} else if !corrupted(err) || !strings.Contains(err.Error(), "rank 1: ") || !strings.Contains(err.Error(), "panic") {
					return fmt.Errorf("got %w, expected a corruption by the panic of rank 1", err)
				}
				return world.Barrier().Wait(ctx)
			})
		})
	}
}

// Close does not wait for a rank that has released the communicator, and reports no error of it. No
// rank waits for one that has closed.
func TestCloseAndRelease(t *testing.T) {
	collective.Forced = map[string]string{"Barrier": "doubling"}
	defer func() { collective.Forced = nil }()
	runBothTimes(t, 20, 4, func(ctx context.Context, world *mpicx.Comm) error {
		c := dup(ctx, world)
		if world.Rank() != 1 {
			return first(c.Close(ctx), world.Barrier().Wait(ctx))
		}
		c.Release()
		c.Release() // does nothing
		var none *mpicx.Comm
		none.Release()
		var outside *mpicx.Cart
		outside.Release()
		world.Release()
		return world.Barrier().Wait(ctx)
	})
}

// A Close that meets a rank which has released waits for nobody, so it may return before another rank
// raises an error. The ranks that get the error and close again need nobody either.
func TestCloseAgainAfterRelease(t *testing.T) {
	collective.Forced = map[string]string{"Barrier": "doubling"}
	defer func() { collective.Forced = nil }()
	runBothTimes(t, 20, 4, func(ctx context.Context, world *mpicx.Comm) error {
		c := dup(ctx, world)
		switch world.Rank() {
		case 3:
			c.Release()
		case 2:
			settle()
			if err := c.SignalError(ctx, 7); !hasType[*mpicx.PropagatedError](err) {
				return fmt.Errorf("got %w, expected the error", err)
			}
			fallthrough
		default:
			for hasType[*mpicx.PropagatedError](c.Close(ctx)) {
			}
		}
		return world.Barrier().Wait(ctx)
	})
}

// Communicators that a program drops are freed, whatever each rank does at the same time, and no
// rank waits for another.
func TestDroppedCommunicatorsAreFreed(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		const ranks, dups = 4, 2000
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			for i := range dups {
				c := world.Dup().MustGet(ctx)
				mpicx.Throw(c.Barrier().Wait(ctx))
				if i%(97+world.Rank()) == 0 {
					runtime.GC()
				}
			}
			for strings.Count(hook.Of(world).Progress(), "\n") > dups/20 { // cleanups run when they run
				runtime.GC()
				runtime.Gosched()
			}
			return world.Barrier().Wait(ctx)
		}, mpicx.WithRanks(ranks), backend))
	})
}

// A Comm is in use while a method waits, and while an Intercomm is made over it.
func TestWhatIsInUseIsNotDropped(t *testing.T) {
	oneProcess(t)
	for name, use := range inOrder(map[string]func(ctx context.Context, rank int, c, group *mpicx.Comm) error{
		"Signal": func(ctx context.Context, rank int, c, group *mpicx.Comm) error {
			if rank == 0 {
				return messagesAre(c.Signal(ctx, errors.New("signalled")), "signalled")
			}
			return messagesAre(c.Barrier().Wait(ctx), "signalled")
		},
		"CreateIntercomm": func(ctx context.Context, rank int, c, group *mpicx.Comm) error {
			return mpicx.CreateIntercomm(group, 0, c, 1-rank%2, 0).Wait(ctx)
		},
	}) {
		t.Run(name, func(t *testing.T) {
			bothBackends(t, func(t *testing.T, backend mpicx.Option) {
				require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
					c, group := world.Dup().MustGet(ctx), world.Split(world.Rank()%2, 0).MustGet(ctx)
					for range 20 * min(world.Rank(), 1) { // rank 0 waits meanwhile
						runtime.GC()
						runtime.Gosched()
					}
					return use(ctx, world.Rank(), c, group)
				}, mpicx.WithRanks(3), backend))
			})
		})
	}
}
