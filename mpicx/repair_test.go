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

// With the black channel the error handler changes nothing: a rank that leaves by an error tells
// the others that, and not that it has returned.
func TestErrorsReturnWithTheBlackChannel(t *testing.T) {
	oneProcess(t)
	lost := errors.New("lost")
	leave := []func() error{
		func() error { return lost },
		func() error { panic("lost") },
		func() error { runtime.Goexit(); return nil },
	}
	for k, source := range product(numbers(60, 0), []int{1, mpicx.AnySource}) {
		why := []string{"lost", "panic: lost", mpicx.ErrGoexit.Error()}[k%3]
		var told error
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			world.SetErrhandler(mpicx.ErrorsReturn)
			if world.Rank() == 1 {
				return leave[k%3]()
			}
			told = mpicx.Recv(world, make([]int, 1), source, 0).Wait(ctx)
			return nil
		}, mpicx.WithRanks(2), hook.Backend[mpicx.Option]("blackchannel"))
		require.ErrorContains(t, err, strings.TrimPrefix(why, "panic: "))
		require.Equal(t, []bool{k%3 == 0, k%3 == 2}, []bool{errors.Is(err, lost), errors.Is(err, mpicx.ErrGoexit)})
		require.NoError(t, corruption(told, 1, why))
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
	for _, calls := range []struct{ raise, repair, after call }{
		{signal, shrink, barrier}, {signal, agree, barrier}, {leave, shrink, shrink}, {leave, agree, shrink},
	} {
		propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
			err := repairAfterParentsError(ctx, world, calls.raise, calls.repair)
			v, ok := err.(interface{ Of(*mpicx.Comm) bool })
			require.True(t, ok && v.Of(world) || world.Rank() == 3, "expected the world's error, got %v", err)
			return calls.after(ctx, world)
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
	for _, n := range []int{1, 2, 3, 5} {
		runBoth(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Throw(agreements(ctx, t, world))
			mpicx.Throw(agreements(ctx, t, dup(ctx, world)))
			return world.Barrier().Wait(ctx)
		})
	}
}

func agreements(ctx context.Context, t *testing.T, c *mpicx.Comm) error {
	me, n := c.Rank(), c.Size()
	require.Equal(t, -1, c.Agree(-1).MustGet(ctx))
	require.Equal(t, 0xff00&^(0x100<<n-0x100), c.Agree(0xff00&^(0x100<<me)).MustGet(ctx), "one bit is missing at each")
	require.Empty(t, c.AgreeFailed().MustGet(ctx))
	first, second, meeting, third := c.Agree(1), c.AgreeFailed(), c.Barrier(), c.Agree(2) // waited for in another order
	require.Equal(t, []int{2, 1}, []int{third.MustGet(ctx), first.MustGet(ctx)})
	mpicx.Throw(errors.Join(second.Wait(ctx), meeting.Wait(ctx)))
	if me == 0 { // the others come to the Barrier later
		meeting = c.Barrier()
	}
	require.Zero(t, c.Agree(0).MustGet(ctx))
	if me > 0 {
		meeting = c.Barrier()
	}
	if n > 1 {
		half := c.Split(me%2, 0).MustGet(ctx)
		ic := mpicx.CreateIntercomm(half, 0, c, 1-me%2, 0).MustGet(ctx)
		require.Equal(t, 2-me%2, ic.Agree(1+me%2).MustGet(ctx))
	}
	return meeting.Wait(ctx)
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
		require.ErrorContains(t, err, "the ranks call Agree")
		return isA[*mpicx.MPIError](err)
	})
}

// An agreePlan is a round of TestAgreeEndsAlike with four ranks.
type agreePlan struct {
	fails       int    // a rank
	pauses      [4]int // before Agree
	pausesAfter int    // pauses of that rank after it; negative: it does not call Agree
	c, raise    bool   // on the child instead of its parent: Agree, the error
	test        bool   // the rank that fails calls Test
}

// H5: an error that comes while an Agree is pending ends it with the result at all ranks, or with
// the error at all. It may be of the communicator or of its parent, and raised by a rank that is in
// the Agree, that has left it, or that has not come to it.
func TestAgreeEndsAlike(t *testing.T) {
	rounds := 3000
	if testing.Short() || buildtags.Race {
		rounds = 300
	}
	rnd := seeded(t)
	plans, ends := make([]agreePlan, rounds), make([][4]string, rounds)
	for i := range plans {
		p := agreePlan{fails: rnd.IntN(4), pausesAfter: rnd.IntN(30) - 1, c: rnd.IntN(3) > 0, test: rnd.IntN(2) > 0}
		p.raise = p.c && rnd.IntN(2) > 0
		for r := range p.pauses {
			p.pauses[r] = rnd.IntN(10)
		}
		plans[i] = p
	}
	oneProcess(t)
	runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		both := map[bool]*mpicx.Comm{false: world, true: dup(ctx, world)}
		for i, p := range plans {
			ends[i][world.Rank()] = p.play(ctx, i|1<<20, world.Rank(), both[p.c], both[p.raise])
			// No rank is told of the next round's error before it has its Try.
			mpicx.Throw(explain(world.TryAll(ctx, succeeds), "round %d: TryAll", i))
		}
		world.Barrier().MustWait(ctx)
		for i, e := range ends {
			require.Equal(t, slices.Repeat(e[:1], 4), e[:], "round %d, %+v", i, plans[i])
			require.NotContains(t, e[0], "the flag")
		}
		return world.Barrier().Wait(ctx)
	})
}

// play returns the result of this rank's Agree on c, while one fails in a Try on another communicator.
func (p agreePlan) play(ctx context.Context, flag, me int, c, on *mpicx.Comm) string {
	failed := errors.New("fails")
	var agreed *future.Future[int]
	err := on.Try(ctx, func(ctx context.Context) error {
		yield(p.pauses[me])
		if me == p.fails && p.pausesAfter < 0 {
			return failed
		}
		agreed = c.Agree(flag)
		if me != p.fails {
			_ = agreed.Wait(ctx)
			return on.Barrier().Wait(ctx)
		}
		for range p.pausesAfter {
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
		require.Equal(t, 3, agreed.MustGet(ctx))
		return nil
	})
}

// What only ulfm can do says so, not the error that the communicator had before.
func TestWithoutULFM(t *testing.T) {
	calls := map[string]func(ctx context.Context, c *mpicx.Comm) error{
		"Shrink":      func(ctx context.Context, c *mpicx.Comm) error { return c.Shrink().Wait(ctx) },
		"Replace":     func(ctx context.Context, c *mpicx.Comm) error { return c.Replace().Wait(ctx) },
		"Revoke":      func(ctx context.Context, c *mpicx.Comm) error { return c.Revoke(ctx) },
		"Agree":       func(ctx context.Context, c *mpicx.Comm) error { return c.Agree(1).Wait(ctx) },
		"AgreeFailed": func(ctx context.Context, c *mpicx.Comm) error { return c.AgreeFailed().Wait(ctx) },
	}
	inBubble(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		for name, call := range inOrder(calls) {
			check := func(err error, why string) {
				require.ErrorIs(t, err, errors.ErrUnsupported)
				require.Regexp(t, "mpicx: "+name+": it needs -tags ulfm.*"+why+"$", err.Error())
				require.False(t, corrupted(err))
			}
			if !strings.HasPrefix(name, "Agree") {
				check(call(ctx, world), "the black channel")
			}
			c := dup(ctx, world)
			require.Error(t, c.Guard(ctx, fails(c, 1, errors.New("lost"))))
			if c.Rank() == 1 {
				_ = c.Barrier().Wait(ctx) // C1: Guard has not waited for the verdict
			}
			check(call(ctx, c), "corrupted by rank 1: lost")
		}
		return nil
	}, hook.Backend[mpicx.Option]("blackchannel"))
}

// Options that need ulfm say so, once in a job.
func TestOptionsWithoutULFM(t *testing.T) {
	for said, option := range map[string]mpicx.Option{
		"":                         mpicx.WithSpares(0),
		"WithSpares(2): spares":    mpicx.WithSpares(2),
		"WithRespawn: fresh ranks": mpicx.WithRespawn(),
	} {
		var out printed
		jobs(t, 3, func(err error) { require.NoError(t, err) }, barrier, option, diagnosesTo(&out))
		if said != "" {
			said = "mpicx: " + said + " need -tags ulfm, so this job has none\n" // of the other backend none
		}
		require.Equal(t, said, out.String())
	}
}
