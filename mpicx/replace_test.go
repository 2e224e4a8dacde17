package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// runWithSpares runs a job of goroutine ranks with the ULFM backend twice: with spares, and with as
// many fresh ranks.
func runWithSpares(t *testing.T, ranks, spares int, fn func(ctx context.Context, world *mpicx.Comm) error) error {
	t.Helper()
	return first(runWith(t, ranks, fn, mpicx.WithSpares(spares)), runWith(t, ranks, fn, mpicx.WithRespawn(), mostFresh(spares)))
}

// runWith runs a job of goroutine ranks with the ULFM backend and these options.
func runWith(t *testing.T, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error, opts ...mpicx.Option) error {
	t.Helper()
	oneProcess(t)
	return mpicx.Run(t.Context(), fn, append(opts, mpicx.WithRanks(ranks), hook.Backend[mpicx.Option]("ulfm"))...)
}

// A spare takes the place of who has died, and knows it; the others keep theirs.
func TestReplace(t *testing.T) {
	var begun atomic.Int32
	require.NoError(t, runWithSpares(t, 4, 2, func(ctx context.Context, world *mpicx.Comm) error {
		begun.Add(1)
		c := world
		if world.Incarnation() == 0 {
			if world.Rank() == 2 {
				mpicxtest.Die(world)
			}
			mpicx.Throw(isA[*mpicx.CommCorruptedError](world.Barrier().Wait(ctx)))
			c = world.Replace().MustGet(ctx)
			require.Equal(t, []int{world.Rank(), world.Size()}, []int{c.Rank(), c.Size()})
		} else {
			require.Equal(t, []int{2, 1}, []int{world.Rank(), world.Incarnation()})
		}
		all := make([]int, 4)
		mpicx.Allgather(c, []int{c.Rank()}, all).MustWait(ctx)
		return errors.Join(same("Replaced", c.Replaced(), []int{2}), same("Allgather", all, indices(4)))
	}))
	require.EqualValues(t, 2*5, begun.Load())
}

// R2: survivors keep their ranks; the lowest spare gets the lowest rank of a dead one, and so on.
func TestReplaceInOrder(t *testing.T) {
	dir, dead := t.TempDir(), []int{1, 3}
	require.NoError(t, runWith(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Incarnation() > 0 {
			return world.Barrier().Wait(ctx)
		}
		world.SetErrhandler(mpicx.ErrorsReturn)
		if slices.Contains(dead, world.Rank()) {
			mpicxtest.Die(world)
		}
		for _, r := range dead {
			mpicx.Throw(deadIs(mpicx.Recv(world, []int{0}, r, 0).Wait(ctx), r))
		}
		return world.Replace().MustGet(ctx).Barrier().Wait(ctx)
	}, mpicx.WithSpares(3), mpicx.WithTimeline(dir)))
	as := make(map[int]int) // by rank in the pool
	for _, l := range eventsOf(t, dir) {
		if l.As != nil {
			as[l.Rank] = *l.As
		}
	}
	require.Equal(t, map[int]int{0: 0, 2: 2, 4: 1, 5: 3}, as)
}

// Without enough spares all ranks learn it alike, and Shrink works. The living need no spare.
func TestReplaceTooFewSpares(t *testing.T) {
	for spares, dead := range [][]int{{3}, {2, 3}} {
		var dying [2]sync.WaitGroup // of both runs
		var begun atomic.Int32
		dying[0].Add(len(dead))
		dying[1].Add(len(dead))
		require.NoError(t, runWithSpares(t, 4, spares, func(ctx context.Context, world *mpicx.Comm) error {
			dying, c := &dying[(begun.Add(1)-1)/4], world.Replace().MustGet(ctx)
			if slices.Contains(dead, world.Rank()) {
				defer dying.Done()
				mpicxtest.Die(world)
			}
			dying.Wait()
			err := c.Replace().Wait(ctx)
			short, _ := errors.AsType[*mpicx.SpareError](err)
			require.Equal(t, &mpicx.SpareError{Spares: spares, Places: dead}, short, "%v", err)
			return c.Shrink().MustGet(ctx).Barrier().Wait(ctx)
		}))
	}
}

// A rank that has left by an error, or has returned, is replaced as well, and so is one that dies
// after it has signalled, which ends a Replace at all ranks. Under ErrorsReturn the program revokes,
// and replaces, itself.
func TestReplaceOfWhoLeaves(t *testing.T) {
	corrupt := func(ctx context.Context, c *mpicx.Comm) error {
		return isA[*mpicx.CommCorruptedError](c.Barrier().Wait(ctx))
	}
	for _, test := range []struct {
		reported    string
		handler     mpicx.Errhandler
		leave, meet func(ctx context.Context, c *mpicx.Comm) error
	}{
		{"<nil>", mpicx.ErrorsPropagate, returns, corrupt},
		{"rank 1: bad input", mpicx.ErrorsPropagate, func(context.Context, *mpicx.Comm) error { return errors.New("bad input") }, corrupt},
		{"rank 1 panicked: boom", mpicx.ErrorsPropagate, func(context.Context, *mpicx.Comm) error { panic("boom") }, corrupt},
		{"<nil>", mpicx.ErrorsPropagate, func(ctx context.Context, c *mpicx.Comm) error {
			mpicx.Throw(isA[*mpicx.PropagatedError](c.SignalError(ctx, 7)))
			mpicxtest.Die(c)
			return nil
		}, func(ctx context.Context, c *mpicx.Comm) error {
			return first(isA[*mpicx.PropagatedError](c.Replace().Wait(ctx)), corrupt(ctx, c))
		}},
		{"<nil>", mpicx.ErrorsReturn, func(_ context.Context, c *mpicx.Comm) error { mpicxtest.Die(c); return nil },
			func(ctx context.Context, c *mpicx.Comm) error {
				require.Error(t, c.Barrier().Wait(ctx), "with a dead rank")
				return c.Revoke(ctx)
			}},
	} {
		err := runWithSpares(t, 3, 1, func(ctx context.Context, c *mpicx.Comm) error {
			if c.Incarnation() == 0 {
				c.SetErrhandler(test.handler)
				if c.Rank() == 1 {
					return test.leave(ctx, c)
				}
				mpicx.Throw(test.meet(ctx, c))
				c = c.Replace().MustGet(ctx)
			}
			return c.Barrier().Wait(ctx)
		})
		require.Equal(t, test.reported == "<nil>", err == nil, "%v", err)
		require.Contains(t, fmt.Sprint(err), test.reported)
	}
}

// A rank that calls something else, or replaces what it cannot replace, gets an error, as all ranks do.
func TestReplaceRefused(t *testing.T) {
	require.NoError(t, runWithSpares(t, 3, 1, func(ctx context.Context, world *mpicx.Comm) error {
		mpicx.Throw(isA[*mpicx.MPIError](world.Dup().MustGet(ctx).Replace().Wait(ctx)))
		mpicx.Throw(isA[*mpicx.MPIError](world.Split(0, 0).MustGet(ctx).Replace().Wait(ctx)))
		call := world.Replace
		if world.Rank() == 1 {
			call = world.Shrink
		}
		mpicx.Throw(isA[*mpicx.MPIError](call().Wait(ctx)))
		small := world.Shrink().MustGet(ctx)
		first, second := world.Replace(), small.Replace()
		mpicx.Throw(isA[*mpicx.MPIError](second.Wait(ctx)))
		c := first.MustGet(ctx)
		require.Nil(t, c.Replaced(), "nobody has died")
		mpicx.Throw(isA[*mpicx.MPIError](world.Replace().Wait(ctx)))
		return c.Barrier().Wait(ctx)
	}))
}

// recovering is a program that continues at full strength as long as there are spares, and then
// with those that are left. It is done when all members have said so.
func recovering(ctx context.Context, c *mpicx.Comm) error {
	for {
		err := c.TryAll(ctx, func(ctx context.Context) error {
			sum := []int{0}
			mpicx.Allreduce(c, []int{1}, sum, mpicx.Sum).MustWait(ctx)
			return first(same("a sum of ones", sum, []int{c.Size()}), exchange(ctx, c, 0), sameIdentity(ctx, c))
		})
		if err == nil {
			var flag int
			if flag, err = c.Agree(1).Get(ctx); err == nil && flag == 1 {
				return nil
			}
		}
		if !corrupted(err) {
			return fmt.Errorf("got %w", err)
		}
		next, err := c.Replace().Get(ctx)
		if hasType[*mpicx.SpareError](err) {
			next, err = c.Shrink().Get(ctx)
		}
		if err != nil {
			return err
		}
		c = next
	}
}

// sameIdentity checks that all say the same of who is new, and that those are.
func sameIdentity(ctx context.Context, c *mpicx.Comm) error {
	type identity struct {
		Replaced    []int
		Incarnation int
	}
	all := mpicx.AllgatherValue(c, identity{c.Replaced(), c.Incarnation()}).MustGet(ctx)
	for r, who := range all {
		if !slices.Equal(who.Replaced, c.Replaced()) || slices.Contains(c.Replaced(), r) && who.Incarnation == 0 {
			return fmt.Errorf("%v was replaced, says rank %d, and %v, says rank %d, of incarnation %d", c.Replaced(), c.Rank(), who.Replaced, r, who.Incarnation)
		}
	}
	return nil
}

// Whoever dies at whatever message, workers and those that wait for a place, one and more at a
// time: the survivors agree on who they are, all have the same size, and nobody has somebody
// else's place.
func TestReplaceAtEveryMessage(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for n, k := range product(numbers(4, 1), indices(3)) {
		for victim := range n + k {
			t.Run(fmt.Sprintf("n%dk%dvictim%d", n, k, victim), func(t *testing.T) {
				replaceAtEveryMessage(t, n, n+k, victim, min(n-1, 1), mpicx.WithSpares(k))
			})
		}
	}
	for n, others := range product(numbers(3, 1), indices(3)) { // their deaths make a Replace necessary
		for victim := range n + 2 {
			t.Run(fmt.Sprintf("n%dvictim%d", n, victim), func(t *testing.T) {
				if others < n {
					replaceAtEveryMessage(t, n, n+2, victim, others, mpicx.WithRespawn(), mostFresh(8))
				}
			})
		}
	}
}

// replaceAtEveryMessage has the victim die, in a job of n ranks and all processes, at each of its
// operations, and at each message of the protocols after others have died.
func replaceAtEveryMessage(t *testing.T, n, all, victim, others int, opts ...mpicx.Option) {
	plans := []string{"kill %d at operation %d"}
	for _, protocol := range []string{"replace", "resolve"} {
		plans = append(plans, plans[0]+fmt.Sprintf("; kill %d in %s message 1", (victim+1)%all, protocol))
	}
	for _, protocol := range []string{"replace", "resolve", "revoke", "agree", "shrink", "end"} {
		plan := "kill %d in " + protocol + " message %d"
		for i := range others {
			plan += fmt.Sprintf("; kill %d at operation %d", (min(victim, n-1)+1+i)%n, 3+i)
		}
		plans = append(plans, plan)
	}
	for _, plan := range plans {
		for at, died := 1, true; died; at++ {
			died = slices.Contains(mpicxtest.RunFaults(t, n, fmt.Sprintf(plan, victim, at), recovering, opts...), victim)
			if t.Failed() {
				t.FailNow()
			}
		}
	}
}

// The same with processes that are killed. Where fresh ranks take the places, no goroutine is left.
func TestReplaceProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, plan := range []string{
		"must kill 1 at operation 5",
		"must kill 0 at operation 9; must kill 4 in replace message 1",
		"must exit 2 with status 3 in resolve message 1; must kill 3 at operation 4",
		"must kill 1 in replace message 1; must kill 2 at operation 3",
	} {
		t.Run(plan, func(t *testing.T) { mpicxtest.RunProcessFaults(t, 6, plan, recovering, mpicx.WithSpares(2)) })
	}
	for _, plan := range []string{
		"must kill 1 at operation 5; must kill 4 at operation 2; kill 5 in resolve message 1; kill 0 at operation 12",
		"must kill 0 at operation 9; must kill 4 in replace message 1",
		"must kill 1 in replace message 1; must kill 2 at operation 3",
		"must kill 1 at operation 3; must kill 2 at operation 4; must kill 3 at operation 5",
	} {
		t.Run("respawn, "+plan, func(t *testing.T) {
			for rank, p := range mpicxtest.RunProcessFaults(t, 4, plan, recovering, mpicx.WithRespawn()) {
				require.True(t, p.Killed || p.Status == 0, "rank %d: status %d\n%s", rank, p.Status, p.Log)
			}
		})
	}
}

func mostFresh(n int) mpicx.Option {
	return hook.Option[mpicx.Option](func(s *hook.Settings) { s.MostFresh = n })
}

// What makes no sense is refused.
func TestSparesRefused(t *testing.T) {
	oneProcess(t)
	require.ErrorContains(t, mpicx.Run(t.Context(), returns, mpicx.WithSpares(-1)), "-1 spares")
	require.ErrorContains(t, mpicx.Run(t.Context(), returns, mpicx.WithRespawn(), mpicx.WithSpares(2)), "WithRespawn and WithSpares(2)")
	require.NoError(t, mpicx.Run(t.Context(), returns, mpicx.WithRespawn(), hook.Backend[mpicx.Option]("blackchannel")))
}
