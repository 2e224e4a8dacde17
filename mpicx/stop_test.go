package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// stepping is a program that calls Stopping in each of its steps, and what happens to it: in each
// attempt some ranks ask for a stop in some steps, and fail in others.
type stepping struct {
	steps       int
	asks, fails []map[[2]int]bool // by attempt: rank and step
	talks       []bool            // in which steps the ranks exchange something
}

func randomStepping(r *rand.Rand, n int) *stepping {
	p := &stepping{steps: 1 + r.IntN(30)}
	places := func(most int) map[[2]int]bool {
		all := make(map[[2]int]bool)
		for range r.IntN(most + 1) {
			all[[2]int{r.IntN(n), r.IntN(p.steps)}] = true
		}
		return all
	}
	for range 4 {
		p.asks, p.fails = append(p.asks, places(2)), append(p.fails, places(2))
	}
	p.fails[3] = nil
	for range p.steps {
		p.talks = append(p.talks, r.IntN(3) == 0)
	}
	return p
}

// run returns what a rank was told, and in which step of which attempt it has stopped.
func (p *stepping) run(ctx context.Context, world, c *mpicx.Comm) (log []string, err error) {
	for attempt := range p.asks {
		err = world.TryAll(ctx, func(ctx context.Context) error {
			for step := range p.steps {
				here := [2]int{world.Rank(), step}
				if p.asks[attempt][here] {
					if err := world.Stop(ctx, fmt.Errorf("as %d says", world.Rank())); err != nil {
						return err
					}
				}
				if p.fails[attempt][here] {
					return fmt.Errorf("attempt %d, step %d", attempt, step)
				}
				yield(world.Rank() * step % 7)
				if err := c.Stopping(ctx); err != nil {
					return fmt.Errorf("step %d: %w", step, err)
				}
				if p.talks[step] {
					if err := mpicx.Allreduce(c, []int{1}, []int{0}, mpicx.Sum).Wait(ctx); err != nil {
						return err
					}
				}
			}
			return nil
		})
		log = append(log, told(err))
		if !hasType[*mpicx.PropagatedError](err) {
			return log, err
		}
	}
	return log, err
}

// All ranks stop in the same call, whoever asks and when, or all get the same error before.
func TestStop(t *testing.T) {
	r := seeded(t)
	for range 150 {
		n := 1 + r.IntN(5)
		p, derived := randomStepping(r, n), r.IntN(2) == 0
		bothBackends(t, func(t *testing.T, backend mpicx.Option) {
			logs := make([][]string, n)
			inBubble(t, n, func(ctx context.Context, world *mpicx.Comm) (err error) {
				c := world
				if derived {
					c = dup(ctx, world)
				}
				logs[world.Rank()], err = p.run(ctx, world, c)
				if err != nil && mpicx.ExitStatus(err) != 75 {
					return err
				}
				return nil
			}, backend)
			for rank := range logs {
				require.Equal(t, logs[0], logs[rank], "rank %d", rank)
			}
		})
	}
}

// stepped calls Stopping on c until there is an error, and returns the number of calls.
func stepped(ctx context.Context, c *mpicx.Comm, step func() error) (calls int, err error) {
	for ; err == nil; calls++ {
		if err = c.Stopping(ctx); err == nil {
			err = step()
		}
	}
	return calls, err
}

// Deaths before, during and after the decision leave all survivors with one.
func TestStopAndDeaths(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n = 3
	program := func(ctx context.Context, world *mpicx.Comm) error {
		err := recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			calls, err := stepped(ctx, a.Comm, func() error {
				if a.Comm.Rank() == 1 {
					mpicx.Throw(world.Stop(ctx, errors.New("enough")))
				}
				return mpicx.Allreduce(a.Comm, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
			})
			if hasType[*mpicx.StopError](err) {
				if err := sameAtAll(ctx, a.Comm, calls); err != nil {
					return a.GiveUp(err)
				}
			}
			return err
		}, recovery.Shrink())
		if world.Size() > 1 && mpicx.ExitStatus(err) != 75 {
			return fmt.Errorf("%w, expected a stop", err)
		}
		return nil
	}
	mpicxtest.EveryDeath(t, n, program)
	for _, protocol := range []string{"stop", "stopping"} {
		for rank := range n {
			for message, died := 1, []int{rank}; len(died) > 0; message++ {
				died = mpicxtest.RunFaults(t, n, fmt.Sprintf("kill %d in %s message %d", rank, protocol, message), program)
			}
		}
	}
}

// A request holds for all communicators that are made from one, before and after it, and no others.
func TestStopOfFamilies(t *testing.T) {
	runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		before := dup(ctx, world)
		calls := 0 // of Stopping on before
		for ; world.Rank() != 3 && calls < 5; calls++ {
			mpicx.Throw(before.Stopping(ctx))
		}
		half := world.Split(world.Rank()/2, 0).MustGet(ctx)
		if world.Rank() == 3 {
			mpicx.Throw(half.Stop(ctx, errors.New("half")))
		}
		if world.Rank() >= 2 {
			_, err := stepped(ctx, half.Dup().MustGet(ctx), func() error { return nil })
			mpicx.Throw(explain(expectStop(err, 3, "half"), "half"))
		}
		world.Barrier().MustWait(ctx)
		mpicx.Throw(first(world.Stopping(ctx), world.Stop(ctx, errors.New("all"))))
		more, _ := stepped(ctx, before, func() error { return nil })
		mpicx.Throw(sameAtAll(ctx, world, calls+more))
		after := dup(ctx, world)
		for _, c := range []*mpicx.Comm{before, after, world} {
			_, err := stepped(ctx, c, func() error { return nil })
			stop, _ := errors.AsType[*mpicx.StopError](err)
			if stop == nil || stop.Why != "all" || c.Stopping(ctx).Error() != err.Error() {
				return fmt.Errorf("on %v: %w", c, err)
			}
		}
		return nil
	})
}

// sameAtAll says that a number is the same at all ranks.
func sameAtAll(ctx context.Context, c *mpicx.Comm, x int) error {
	all := make([]int, c.Size())
	mpicx.Allgather(c, []int{x}, all).MustWait(ctx)
	if slices.Min(all) != slices.Max(all) {
		return fmt.Errorf("the ranks have %v", all)
	}
	return nil
}

// Calls that return an error, or end by their context, do not count.
func TestStoppingCounts(t *testing.T) {
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		for attempt := range 3 {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				mpicx.Throw(world.Stopping(ctx))
				switch world.Rank() {
				case attempt:
					return errClose
				case (attempt + 1) % 3:
					untilError(world)
					return world.Stopping(ctx)
				}
				return world.Barrier().Wait(ctx)
			})
			mpicx.Throw(failedAt(err, attempt))
		}
		calls := 0
		if world.Rank() == 0 { // waits for the others, which have not come
			mpicx.Throw(first(world.Stopping(ctx), world.Stop(ctx, errors.New("soon"))))
			over, cancel := context.WithCancelCause(ctx)
			cancel(errClose)
			for calls = 1; world.Stopping(over) == nil; calls++ {
			}
			mpicx.Throw(expect(world.Stopping(over), errClose))
		}
		world.Barrier().MustWait(ctx)
		more, err := stepped(ctx, world, func() error { return nil })
		mpicx.Throw(isA[*mpicx.StopError](err))
		return sameAtAll(ctx, world, calls+more)
	})
}

func expectStop(err error, rank int, why string) error {
	if s, _ := err.(*mpicx.StopError); s == nil || s.Rank != rank || s.Why != why || s.Signal != nil {
		return fmt.Errorf("got %w, expected a stop by rank %d: %s", err, rank, why)
	}
	return nil
}

// Scopes and Run return a StopError as it is, but one that is joined with another error.
func TestStopLeavesScopes(t *testing.T) {
	for name, scope := range map[string]func(*mpicx.Comm, context.Context, func(context.Context) error) error{
		"Try": (*mpicx.Comm).Try, "TryAll": (*mpicx.Comm).TryAll, "Guard": (*mpicx.Comm).Guard,
	} {
		jobs(t, 3, func(err error) {
			require.EqualError(t, err, "outside: inside: mpicx: stopped by rank 0: done", name)
			require.Equal(t, 75, mpicx.ExitStatus(err))
		}, func(ctx context.Context, world *mpicx.Comm) error {
			err := scope(world, ctx, func(ctx context.Context) error {
				if world.Rank() == 0 {
					mpicx.Throw(world.Stop(ctx, errors.New("done")))
				}
				_, err := stepped(ctx, world, func() error { return nil })
				if err = fmt.Errorf("inside: %w", err); world.Rank() == 1 {
					mpicx.Throw(err)
				}
				return err
			})
			world.Barrier().MustWait(ctx) // the communicator works
			return fmt.Errorf("outside: %w", err)
		})
		jobs(t, 2, func(err error) {
			require.ErrorContains(t, err, "lost as well", name)
			require.False(t, hasType[*mpicx.StopError](err) && name == "TryAll", "%v", err)
			require.Equal(t, 1, mpicx.ExitStatus(err))
		}, func(ctx context.Context, world *mpicx.Comm) error {
			return scope(world, ctx, func(ctx context.Context) error {
				mpicx.Throw(world.Stop(ctx, errors.New("done")))
				_, err := stepped(ctx, world, func() error { return nil })
				if world.Rank() == 1 {
					return errors.Join(err, errors.New("lost as well"))
				}
				return err
			})
		})
	}
}

// A rank that makes fewer calls than others keeps them from stopping: they are told that it has
// returned.
func TestStoppingUnequally(t *testing.T) {
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Stop(ctx, errors.New("now"))
		if world.Rank() == 1 {
			return err
		}
		_, err = stepped(ctx, world, func() error { return nil })
		if err == nil || hasType[*mpicx.StopError](err) {
			return fmt.Errorf("got %w, expected that rank 1 has returned", err)
		}
		return nil
	})
}

// A stop that is asked for when a rank has made its last call keeps nobody from ending: that rank has
// returned, or given the communicator up.
func TestStopTooLate(t *testing.T) {
	if mpicx.Backend == "ulfm" && processes != nil {
		t.Skip("a process that has returned, and is needed, counts as dead")
	}
	for name, last := range inOrder(map[string]func(c *mpicx.Comm){
		"returns":  func(*mpicx.Comm) {},
		"releases": (*mpicx.Comm).Release,
	}) {
		t.Run(name, func(t *testing.T) {
			runBothTimes(t, 10, 4, func(ctx context.Context, world *mpicx.Comm) error {
				c := world
				if name == "releases" {
					c = dup(ctx, world)
				}
				if world.Rank() == 1 { // needs nobody from here on
					err := c.Stopping(ctx)
					last(c)
					return err
				}
				if world.Rank() == 0 {
					mpicx.Throw(c.Stopping(ctx))
					return mpicx.Recv(world, []int{0}, 3, 0).Wait(ctx)
				}
				settle()
				if world.Rank() == 3 {
					mpicx.Throw(c.Stop(ctx, errors.New("now")))
				}
				mpicx.Throw(c.Stopping(ctx))
				if world.Rank() == 3 {
					return mpicx.Send(world, []int{0}, 0, 0).Wait(ctx)
				}
				return nil
			})
		})
	}
}
