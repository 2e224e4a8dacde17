package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"strings"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// With the black channel the error handler changes nothing: who leaves tells.
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

// An operation that is begun before the corruption of its communicator was told ends with that, and
// meets nothing of the ranks that repair it.
func TestRepairsMeetOnlyRepairs(t *testing.T) {
	for range 100 {
		inBubble(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			child := dup(ctx, world)
			if world.Rank() == 0 { // busy in the parent
				mpicx.Recv(world, make([]int, 1), 1, 0).MustWait(ctx)
				mpicx.Throw(isA[*mpicx.CommCorruptedError](child.Agree(1).Wait(ctx)))
			} else {
				_ = child.Guard(ctx, fails(child, 1, errors.New("rank 1 leaves")))
				if world.Rank() == 1 {
					mpicx.Send(world, []int{1}, 0, 0).MustWait(ctx)
				}
			}
			living, err := child.Shrink().Get(ctx)
			if err != nil || living.Size() != 3 {
				return fmt.Errorf("Shrink: %v, %w", living, err)
			}
			return nil
		}, hook.Backend[mpicx.Option]("ulfm"))
	}
}

// A rank leaves Guard by an error of its own, and the Try around that returns an older one,
// which all ranks have. Then it is told of the corruption as they are, and calls what they
// call.
func TestUnwoundInsideOfATryThatReturnsAnother(t *testing.T) {
	if mpicx.Backend != "ulfm" {
		t.Skip("repairs need the ULFM backend")
	}
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			switch world.Rank() {
			case 0:
				return world.SignalError(ctx, 12)
			case 1:
				settle()
				_ = world.Err() // it joins the round
				settle()
				return world.Guard(ctx, func(context.Context) error { return errors.New("unwinds") })
			}
			return world.Barrier().Wait(ctx)
		})
		mpicx.Throw(explain(propagated(err, 12), "Try"))
		if _, err := world.Agree(1).Get(ctx); !errors.As(err, new(*mpicx.CommCorruptedError)) {
			return fmt.Errorf("Agree: %w", err)
		}
		return shrinks(ctx, world, 3)
	})
}

// D2: a rank that repairs a corrupted child is told an error of the parent in place of that, if the
// program was not told it before. The others go where that is handled, and never come to the
// repair.
func TestRepairAfterParentsError(t *testing.T) {
	fakeTime(t)
	raise := map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"propagated": func(ctx context.Context, world *mpicx.Comm) error { return world.SignalError(ctx, 7) },
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error {
			return world.Guard(ctx, func(context.Context) error { return errors.New("of the world") })
		},
	}
	repairs := map[string]func(ctx context.Context, child *mpicx.Comm) error{
		"Shrink": func(ctx context.Context, child *mpicx.Comm) error { return child.Shrink().Wait(ctx) },
		"Agree":  func(ctx context.Context, child *mpicx.Comm) error { return child.Agree(1).Wait(ctx) },
	}
	for kind := range raise {
		for call := range repairs {
			t.Run(kind+"/"+call, func(t *testing.T) {
				propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
					err := repairAfterParentsError(ctx, world, raise[kind], repairs[call])
					if v, ok := err.(interface{ Of(*mpicx.Comm) bool }); !(ok && v.Of(world)) && world.Rank() < 3 {
						return fmt.Errorf("expected the world's error, got %w", err)
					}
					if kind == "propagated" {
						return world.Barrier().Wait(ctx)
					}
					return world.Shrink().Wait(ctx)
				})
			})
		}
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
		t.Run(name, func(t *testing.T) {
			bothBackends(t, func(t *testing.T, backend mpicx.Option) {
				for _, n := range []int{1, 2, 3, 5} {
					require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
						for _, c := range []*mpicx.Comm{world, dup(ctx, world)} {
							if got, err := program(ctx, c); err != nil || got != 0 {
								return fmt.Errorf("%d ranks: %v off, %w", n, got, err)
							}
						}
						return world.Barrier().Wait(ctx)
					}, mpicx.WithRanks(n), backend))
				}
			})
		})
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

// H5: an error that comes while an Agree is pending ends it with the result at all ranks, or with
// the error at all. It may be of the communicator or of its parent, and raised by a rank that is in
// the Agree, that has left it, or that has not come to it.
func TestAgreeEndsAlike(t *testing.T) {
	oneProcess(t)
	rounds := 3000
	if testing.Short() || buildtags.Race {
		rounds = 300
	}
	const n = 4
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		rnd := seeded(t)
		type plan struct {
			who      int    // fails
			pauses   [n]int // before Agree
			then     int    // pauses after it, at who; negative: who does not call it
			c, raise bool   // on the child instead of its parent: Agree, the error
			test     bool   // who calls Test
		}
		plans := make([]plan, rounds)
		for i := range plans {
			p := plan{who: rnd.IntN(n), then: rnd.IntN(30) - 1, c: rnd.IntN(3) > 0, test: rnd.IntN(2) > 0}
			p.raise = p.c && rnd.IntN(2) > 0
			for r := range p.pauses {
				p.pauses[r] = rnd.IntN(10)
			}
			plans[i] = p
		}
		ends := make([][n]string, rounds)
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			both := map[bool]*mpicx.Comm{false: world, true: dup(ctx, world)}
			for i, p := range plans {
				c, on := both[p.c], both[p.raise]
				failed := errors.New("fails")
				var agreed *future.Future[int]
				err := on.Try(ctx, func(ctx context.Context) error {
					for range p.pauses[world.Rank()] {
						runtime.Gosched()
					}
					if world.Rank() == p.who && p.then < 0 {
						return failed
					}
					agreed = c.Agree(i | 1<<20)
					if world.Rank() != p.who {
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
				flag := 0
				if agreed != nil {
					flag, err = agreed.Get(ctx)
				}
				if err == nil && flag != i|1<<20 {
					return fmt.Errorf("round %d: flag %d", i, flag)
				}
				ends[i][world.Rank()] = fmt.Sprint(err)
				// No rank is told of the next round's error before it has its Try.
				mpicx.Throw(explain(world.TryAll(ctx, func(context.Context) error { return nil }), "round %d: TryAll", i))
			}
			return nil
		}, mpicx.WithRanks(n), backend))
		seen := make(map[bool]int)
		for i, e := range ends {
			for _, one := range e[1:] {
				require.Equal(t, e[0], one, "round %d, %+v", i, plans[i])
			}
			seen[e[0] == "<nil>"]++
		}
		t.Logf("agreed %d, not agreed %d", seen[true], seen[false])
	})
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
			require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				if !strings.HasPrefix(name, "Agree") {
					mpicx.Throw(check(call(ctx, world), "the black channel"))
				}
				c := dup(ctx, world)
				err := c.Guard(ctx, fails(c, 1, errors.New("lost")))
				if err == nil {
					return errors.New("Guard: nil")
				}
				if c.Rank() == 1 {
					_ = c.Barrier().Wait(ctx) // C1: Guard has not waited for the verdict
				}
				return check(call(ctx, c), "corrupted by rank 1: lost")
			}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("blackchannel")))
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
