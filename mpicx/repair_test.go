package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// With the black channel the error handler changes nothing: a rank that leaves tells the others.
func TestErrorsReturnWithTheBlackChannel(t *testing.T) {
	oneProcess(t)
	for _, leave := range []func() error{
		func() error { return errors.New("lost") },
		func() error { panic("lost") },
		func() error { runtime.Goexit(); return nil },
	} {
		heard := make([]error, 3)
		require.Error(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			world.SetErrhandler(mpicx.ErrorsReturn)
			if world.Rank() == 1 {
				return leave()
			}
			heard[world.Rank()] = mpicx.Recv(world, make([]int, 1), 1, 0).Wait(ctx)
			return nil
		}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("blackchannel"))) // of rank 1
		for _, r := range []int{0, 2} {
			_, ok := errors.AsType[*mpicx.CommCorruptedError](heard[r])
			require.True(t, ok, "rank %d: %v", r, heard[r])
		}
	}
}

// D2: a rank that repairs a corrupted child is told an error of the parent in place of that, if the
// program was not told it before. The others go where that is handled, and never come to the
// repair.
func TestRepairAfterParentsError(t *testing.T) {
	fakeTime(t)
	type call = func(ctx context.Context, c *mpicx.Comm) error
	shrink := func(ctx context.Context, c *mpicx.Comm) error { return c.Shrink().Wait(ctx) }
	agree := func(ctx context.Context, c *mpicx.Comm) error { return c.Agree(1).Wait(ctx) }
	signal := func(ctx context.Context, world *mpicx.Comm) error { return world.SignalError(ctx, 7) }
	leave := func(ctx context.Context, world *mpicx.Comm) error {
		return world.Guard(ctx, func(context.Context) error { return errors.New("of the world") })
	}
	for name, calls := range map[string]struct{ raise, repair, after call }{
		"propagated/Shrink": {signal, shrink, barrier}, "propagated/Agree": {signal, agree, barrier},
		"corrupted/Shrink": {leave, shrink, shrink}, "corrupted/Agree": {leave, agree, shrink},
	} {
		t.Run(name, func(t *testing.T) {
			propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
				err := repairAfterParentsError(ctx, world, calls.raise, calls.repair)
				if v, ok := err.(interface{ Of(*mpicx.Comm) bool }); !(ok && v.Of(world)) && world.Rank() < 3 {
					return fmt.Errorf("expected the world's error, got %w", err)
				}
				return calls.after(ctx, world)
			})
		})
	}
}

// repairAfterParentsError returns what each rank is told when rank 3 has failed on the child, and then raises on the world.
func repairAfterParentsError(ctx context.Context, world *mpicx.Comm, raise, repair func(context.Context, *mpicx.Comm) error) error {
	child := world.Split(min(world.Rank(), 1), 0).MustGet(ctx)
	switch world.Rank() {
	case 3:
		_ = child.Guard(ctx, func(context.Context) error { return errors.New("of the child") })
		time.Sleep(time.Second)
		return raise(ctx, world)
	case 1:
		mpicx.Throw(isA[*mpicx.CommCorruptedError](child.Barrier().Wait(ctx)))
		time.Sleep(2 * time.Second)
		mpicx.Throw(explain(world.Err(), "the world's round is over")) // this rank joins it, which rank 0 has not
		time.Sleep(2 * time.Second)
		return repair(ctx, child)
	case 0:
		time.Sleep(3 * time.Second)
	}
	return world.Barrier().Wait(ctx) // rank 2 joins the child's round as well, and is told the world's
}

// A program that ends while a Shrink of it is pending is left behind; the Shrink of the others is
// not disturbed. One that ends while a Split of it is pending counts as dead there, and joins the
// round in which the others tell each other.
func TestProgramEndsInRepair(t *testing.T) {
	for range 50 {
		propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 2 {
				_ = world.Guard(ctx, func(context.Context) error { return errors.New("leaves") })
			}
			mpicx.Throw(isA[*mpicx.CommCorruptedError](world.Barrier().Wait(ctx)))
			repair := world.Shrink()
			if world.Rank() == 2 {
				return nil
			}
			small := repair.MustGet(ctx)
			return unlessCorrupted(small.Barrier().Wait(ctx))
		})
		propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			split := world.Split(0, 0)
			if world.Rank() == 2 {
				return nil
			}
			return unlessCorrupted(split.Wait(ctx))
		})
	}
}

// As long as nobody has died, agreements are the same with both backends.
func TestAgreeWithBothBackends(t *testing.T) {
	oneProcess(t)
	programs := map[string]func(ctx context.Context, c *mpicx.Comm) (any, error){
		"Agree(-1)": func(ctx context.Context, c *mpicx.Comm) (any, error) {
			flag, err := c.Agree(-1).Get(ctx)
			return flag + 1, err
		},
		"Agree, with one bit missing at each": func(ctx context.Context, c *mpicx.Comm) (any, error) {
			flag, err := c.Agree(0xff00 &^ (0x100 << c.Rank())).Get(ctx)
			return flag - 0xff00&^(0x100<<c.Size()-0x100), err
		},
		"AgreeFailed": func(ctx context.Context, c *mpicx.Comm) (any, error) {
			dead, err := c.AgreeFailed().Get(ctx)
			return len(dead), err
		},
		"several at once, waited for in another order": func(ctx context.Context, c *mpicx.Comm) (any, error) {
			first, second, barrier := c.Agree(1), c.AgreeFailed(), c.Barrier()
			third := c.Agree(2)
			return third.MustGet(ctx) - 2 + first.MustGet(ctx) - 1, errors.Join(second.Wait(ctx), barrier.Wait(ctx))
		},
		"a Barrier that others come to later": func(ctx context.Context, c *mpicx.Comm) (any, error) {
			early := c.Rank() == 0
			if early {
				defer c.Barrier().MustWait(ctx)
			}
			flag, err := c.Agree(0).Get(ctx)
			if !early {
				defer c.Barrier().MustWait(ctx)
			}
			return flag, err
		},
		"Inter": func(ctx context.Context, c *mpicx.Comm) (any, error) {
			if c.Size() == 1 {
				return 0, nil
			}
			half := c.Split(c.Rank()%2, 0).MustGet(ctx)
			ic := mpicx.CreateIntercomm(half, 0, c, 1-c.Rank()%2, 0).MustGet(ctx)
			flag, err := ic.Agree(1 + c.Rank()%2).Get(ctx)
			return flag - 2 + c.Rank()%2, err
		},
	}
	for name, program := range programs {
		for _, n := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				runBoth(t, n, func(ctx context.Context, world *mpicx.Comm) error {
					for _, c := range []*mpicx.Comm{world, dup(ctx, world)} {
						if got, err := program(ctx, c); err != nil || got != 0 {
							return fmt.Errorf("%v off, %w", got, err)
						}
					}
					return world.Barrier().Wait(ctx)
				})
			})
		}
	}
}

// Calls that differ are told to all, with both backends.
func TestAgreeMeetsAgreeFailed(t *testing.T) {
	oneProcess(t)
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.AgreeFailed().Wait(ctx)
		if world.Rank() > 0 {
			err = world.Agree(1).Wait(ctx)
		} else if err == nil {
			err = world.AgreeFailed().Wait(ctx)
		}
		if _, is := errors.AsType[*mpicx.MPIError](err); !is || !strings.Contains(err.Error(), "the ranks call Agree") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// An agreePlan is a round of TestAgreeEndsAlike with four ranks.
type agreePlan struct {
	fails    int    // a rank
	pauses   [4]int // before Agree
	then     int    // pauses of that rank after it; negative: it does not call Agree
	c, raise bool   // on the child instead of its parent: Agree, the error
	test     bool   // the rank that fails calls Test
}

// H5: an error that comes while an Agree is pending ends it with the result at all ranks, or with
// the error at all. It may be of the communicator or of its parent, and raised by a rank that is in
// the Agree, that has left it, or that has not come to it.
func TestAgreeEndsAlike(t *testing.T) {
	oneProcess(t)
	rounds := 3000
	if testing.Short() || buildtags.Race {
		rounds = 300
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		rnd := seeded(t)
		plans, ends := make([]agreePlan, rounds), make([][4]string, rounds)
		for i := range plans {
			p := agreePlan{fails: rnd.IntN(4), then: rnd.IntN(30) - 1, c: rnd.IntN(3) > 0, test: rnd.IntN(2) > 0}
			p.raise = p.c && rnd.IntN(2) > 0
			for r := range p.pauses {
				p.pauses[r] = rnd.IntN(10)
			}
			plans[i] = p
		}
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			both := map[bool]*mpicx.Comm{false: world, true: dup(ctx, world)}
			for i, p := range plans {
				ends[i][world.Rank()] = p.play(ctx, i|1<<20, world.Rank(), both[p.c], both[p.raise])
				// No rank is told of the next round's error before it has its Try.
				mpicx.Throw(explain(world.TryAll(ctx, func(context.Context) error { return nil }), "round %d: TryAll", i))
			}
			return nil
		}, mpicx.WithRanks(4), backend))
		for i, e := range ends {
			require.Equal(t, slices.Repeat(e[:1], 4), e[:], "round %d, %+v", i, plans[i])
			require.NotContains(t, e[0], "the flag")
		}
	})
}

// play returns the result of this rank's Agree on c, while one fails in a Try on another communicator.
func (p agreePlan) play(ctx context.Context, flag, me int, c, on *mpicx.Comm) string {
	failed := errors.New("fails")
	var agreed *future.Future[int]
	err := on.Try(ctx, func(ctx context.Context) error {
		for range p.pauses[me] {
			runtime.Gosched()
		}
		if me == p.fails && p.then < 0 {
			return failed
		}
		agreed = c.Agree(flag)
		if me != p.fails {
			_ = agreed.Wait(ctx)
			return on.Barrier().Wait(ctx)
		}
		for range p.then {
			runtime.Gosched()
			if p.test {
				_, _ = agreed.Test()
			}
		}
		return failed
	})
	mpicx.Throw(isA[*mpicx.PropagatedError](err))
	if agreed == nil {
		return err.Error()
	}
	got, err := agreed.Get(ctx)
	switch {
	case err != nil:
		return err.Error()
	case got != flag:
		return fmt.Sprintf("the flag %d, expected %d", got, flag)
	}
	return "agreed"
}

// An error of a sibling ends the Wait for an Agree, but not the Agree.
func TestAgreeInATryOnASibling(t *testing.T) {
	oneProcess(t)
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		sibling, c := dup(ctx, world), dup(ctx, world)
		var agreed *future.Future[int]
		err := sibling.Try(ctx, func(ctx context.Context) error {
			switch world.Rank() {
			case 0:
				<-ctx.Done()
				time.Sleep(time.Millisecond) // rank 2 waits for the verdict
			case 1:
				time.Sleep(time.Millisecond) // rank 2 waits in Agree
				agreed = c.Agree(3)
				return errors.New("lost")
			}
			agreed = c.Agree(3)
			return agreed.Wait(ctx)
		})
		mpicx.Throw(isA[*mpicx.PropagatedError](err))
		if flag, err := agreed.Get(ctx); flag != 3 {
			return fmt.Errorf("Agree: %d, %w", flag, err)
		}
		return nil
	})
}

// What only ulfm can do says so, not the error that the communicator had before.
func TestWithoutULFM(t *testing.T) {
	oneProcess(t)
	calls := map[string]func(ctx context.Context, c *mpicx.Comm) error{
		"Shrink":      func(ctx context.Context, c *mpicx.Comm) error { return c.Shrink().Wait(ctx) },
		"Replace":     func(ctx context.Context, c *mpicx.Comm) error { return c.Replace().Wait(ctx) },
		"Revoke":      func(ctx context.Context, c *mpicx.Comm) error { return c.Revoke(ctx) },
		"Agree":       func(ctx context.Context, c *mpicx.Comm) error { return c.Agree(1).Wait(ctx) },
		"AgreeFailed": func(ctx context.Context, c *mpicx.Comm) error { return c.AgreeFailed().Wait(ctx) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			check := func(err error, why string) error {
				if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "mpicx: "+name+": it needs -tags ulfm") ||
					!strings.HasSuffix(err.Error(), why) || corrupted(err) {
					return fmt.Errorf("got %w", err)
				}
				return nil
			}
			inBubble(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				if !strings.HasPrefix(name, "Agree") {
					mpicx.Throw(check(call(ctx, world), "the black channel"))
				}
				c := dup(ctx, world)
				if c.Guard(ctx, fails(c, 1, errors.New("lost"))) == nil {
					return errors.New("Guard: nil")
				}
				if c.Rank() == 1 {
					_ = c.Barrier().Wait(ctx) // C1: Guard has not waited for the verdict
				}
				return check(call(ctx, c), "corrupted by rank 1: lost")
			}, hook.Backend[mpicx.Option]("blackchannel"))
		})
	}
}

// Options that need ulfm say so, once in a job.
func TestOptionsWithoutULFM(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for said, option := range map[string]mpicx.Option{
			"":                         mpicx.WithSpares(0),
			"WithSpares(2): spares":    mpicx.WithSpares(2),
			"WithRespawn: fresh ranks": mpicx.WithRespawn(),
		} {
			var out strings.Builder
			require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				return world.Barrier().Wait(ctx)
			}, mpicx.WithRanks(3), option, backend, diagnosesTo(&out)))
			if said == "" || strings.HasSuffix(t.Name(), "ulfm") {
				require.Empty(t, out.String())
			} else {
				require.Equal(t, "mpicx: "+said+" need -tags ulfm, so this job has none\n", out.String())
			}
		}
	})
}
