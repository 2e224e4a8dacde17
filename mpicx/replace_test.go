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

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// runWithSpares runs a job of goroutine ranks with the ULFM backend twice: with spares, and with as
// many fresh ranks.
func runWithSpares(t *testing.T, ranks, spares int, fn func(ctx context.Context, world *mpicx.Comm) error) error {
	t.Helper()
	err := runWith(t, []mpicx.Option{mpicx.WithSpares(spares)}, ranks, fn)
	if err == nil {
		err = runWithRespawn(t, ranks, spares, fn)
	}
	return err
}

// runWith runs a job of goroutine ranks with the ULFM backend and these options.
func runWith(t *testing.T, opts []mpicx.Option, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error) error {
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
			if c.Rank() != world.Rank() || c.Size() != world.Size() {
				return fmt.Errorf("rank %d of %d became %d of %d", world.Rank(), world.Size(), c.Rank(), c.Size())
			}
		} else if world.Rank() != 2 || world.Incarnation() != 1 {
			return fmt.Errorf("a spare is rank %d, incarnation %d", world.Rank(), world.Incarnation())
		}
		all := make([]int, 4)
		mpicx.Allgather(c, []int{c.Rank()}, all).MustWait(ctx)
		return errors.Join(same("Replaced", c.Replaced(), []int{2}), same("Allgather", all, indices(4)))
	}))
	require.EqualValues(t, 2*5, begun.Load())
}

// R2: survivors keep their ranks, and the spares, lowest first, get those of the dead, lowest
// first.
func TestReplaceInOrder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, runWith(t, []mpicx.Option{mpicx.WithSpares(3), mpicx.WithTimeline(dir)}, 4, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Incarnation() > 0 {
			return world.Barrier().Wait(ctx)
		}
		world.SetErrhandler(mpicx.ErrorsReturn)
		dead := []int{1, 3}
		if slices.Contains(dead, world.Rank()) {
			mpicxtest.Die(world)
		}
		for _, r := range dead {
			mpicx.Throw(deadIs(mpicx.Recv(world, []int{0}, r, 0).Wait(ctx), r))
		}
		c := world.Replace().MustGet(ctx)
		return c.Barrier().Wait(ctx)
	}))
	as := make(map[int]int) // by rank in the pool
	for _, l := range eventsOf(t, dir) {
		if l.As != nil {
			as[l.Rank] = *l.As
		}
	}
	require.Equal(t, map[int]int{0: 0, 2: 2, 4: 1, 5: 3}, as)
}

// Without enough spares all ranks learn it alike, and Shrink works.
func TestReplaceTooFewSpares(t *testing.T) {
	var dying [2]sync.WaitGroup // of both runs
	dying[0].Add(2)
	dying[1].Add(2)
	var begun atomic.Int32
	require.NoError(t, runWithSpares(t, 4, 1, func(ctx context.Context, world *mpicx.Comm) error {
		dying := &dying[(begun.Add(1)-1)/4]
		if world.Rank() >= 2 {
			defer dying.Done()
			mpicxtest.Die(world)
		}
		dying.Wait()
		_, err := world.Replace().Get(ctx)
		if short, ok := errors.AsType[*mpicx.SpareError](err); !ok || short.Spares != 1 || !slices.Equal(short.Places, []int{2, 3}) {
			return fmt.Errorf("Replace: %v", err)
		}
		c := world.Shrink().MustGet(ctx)
		return c.Barrier().Wait(ctx)
	}))
}

// The same place is taken over again and again, until nobody is there who was in the beginning.
func TestReplaceAgain(t *testing.T) {
	const n, k = 2, 6
	require.NoError(t, runWithSpares(t, n, k, func(ctx context.Context, c *mpicx.Comm) error {
		for {
			all, err := mpicx.AllgatherValue(c, c.Incarnation()).Get(ctx)
			switch {
			case err != nil:
				if c, err = c.Replace().Get(ctx); err != nil {
					return err
				}
			case slices.Min(all) == k/n:
				return nil
			case c.Rank() == slices.Index(all, slices.Min(all)):
				mpicxtest.Die(c)
			}
		}
	}))
}

// A signal ends a Replace at all ranks, as it ends Shrink, and then it can be called again.
func TestSignalDuringReplace(t *testing.T) {
	require.NoError(t, runWithSpares(t, 4, 1, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Incarnation() > 0 {
			return world.Barrier().Wait(ctx)
		}
		if world.Rank() == 2 {
			mpicx.Throw(isA[*mpicx.PropagatedError](world.SignalError(ctx, 7)))
			mpicxtest.Die(world)
		}
		mpicx.Throw(isA[*mpicx.PropagatedError](world.Replace().Wait(ctx)))
		mpicx.Throw(isA[*mpicx.CommCorruptedError](world.Barrier().Wait(ctx)))
		c := world.Replace().MustGet(ctx)
		return c.Barrier().Wait(ctx)
	}))
}

// Under ErrorsReturn the program revokes, and replaces, itself.
func TestReplaceRevoked(t *testing.T) {
	require.NoError(t, runWithSpares(t, 3, 1, func(ctx context.Context, c *mpicx.Comm) error {
		if c.Incarnation() == 0 {
			c.SetErrhandler(mpicx.ErrorsReturn)
			if c.Rank() == 1 {
				mpicxtest.Die(c)
			}
			if err := c.Barrier().Wait(ctx); err == nil {
				return errors.New("a Barrier with a dead rank")
			}
			mpicx.Throw(c.Revoke(ctx))
			c = c.Replace().MustGet(ctx)
		}
		return c.Barrier().Wait(ctx)
	}))
}

// A rank that has left by an error, or has returned, is replaced as well.
func TestReplaceOfTheReturned(t *testing.T) {
	for reported, leave := range map[string]func() error{
		"":                      func() error { return nil },
		"rank 1: bad input":     func() error { return errors.New("bad input") },
		"rank 1 panicked: boom": func() error { panic("boom") },
	} {
		err := runWithSpares(t, 3, 1, func(ctx context.Context, c *mpicx.Comm) error {
			if c.Incarnation() == 0 {
				if c.Rank() == 1 {
					return leave()
				}
				mpicx.Throw(isA[*mpicx.CommCorruptedError](c.Barrier().Wait(ctx)))
				c = c.Replace().MustGet(ctx)
			}
			return c.Barrier().Wait(ctx)
		})
		if reported == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, reported)
		}
	}
}

// A rank that calls something else, or replaces what it cannot replace, gets an error, as all ranks do.
func TestReplaceRefused(t *testing.T) {
	require.NoError(t, runWithSpares(t, 3, 1, func(ctx context.Context, world *mpicx.Comm) error {
		for _, f := range []*future.Future[*mpicx.Comm]{world.Dup(), world.Split(0, 0)} {
			c := f.MustGet(ctx)
			mpicx.Throw(isA[*mpicx.MPIError](c.Replace().Wait(ctx)))
		}
		call := world.Replace
		if world.Rank() == 1 {
			call = world.Shrink
		}
		mpicx.Throw(isA[*mpicx.MPIError](call().Wait(ctx)))
		small := world.Shrink().MustGet(ctx)
		first, second := world.Replace(), small.Replace()
		mpicx.Throw(isA[*mpicx.MPIError](second.Wait(ctx)))
		c := first.MustGet(ctx)
		if c.Replaced() != nil {
			return fmt.Errorf("replaced %v though nobody has died", c.Replaced())
		}
		mpicx.Throw(isA[*mpicx.MPIError](world.Replace().Wait(ctx)))
		return c.Barrier().Wait(ctx)
	}))
}

// Without spares Replace is what it is with none left.
func TestReplaceWithoutSpares(t *testing.T) {
	oneProcess(t)
	require.ErrorContains(t, mpicx.Run(t.Context(), func(context.Context, *mpicx.Comm) error { return nil }, mpicx.WithSpares(-1)), "-1 spares")
	require.NoError(t, runWithSpares(t, 3, 0, func(ctx context.Context, world *mpicx.Comm) error {
		c := world.Replace().MustGet(ctx)
		if c.Rank() == 2 {
			mpicxtest.Die(world)
		}
		mpicx.Throw(isA[*mpicx.CommCorruptedError](c.Barrier().Wait(ctx)))
		mpicx.Throw(isA[*mpicx.SpareError](c.Replace().Wait(ctx)))
		small := c.Shrink().MustGet(ctx)
		return small.Barrier().Wait(ctx)
	}))
}

// recovering is a program that goes on at full strength as long as there are spares, and then
// with those that are left. It is done when all members have said so.
func recovering(ctx context.Context, c *mpicx.Comm) error {
	for {
		err := c.TryAll(ctx, func(ctx context.Context) error {
			sum := []int{0}
			mpicx.Allreduce(c, []int{1}, sum, mpicx.Sum).MustWait(ctx)
			if sum[0] != c.Size() {
				return fmt.Errorf("a sum of %d ones, of %d ranks", sum[0], c.Size())
			}
			mpicx.Throw(exchange(ctx, c, 0))
			return sameIdentity(ctx, c)
		})
		if err == nil {
			flag, err := c.Agree(1).Get(ctx)
			if err == nil && flag == 1 {
				return nil
			}
			if !corrupted(err) {
				return fmt.Errorf("Agree: %d %v", flag, err)
			}
		} else if !corrupted(err) {
			return err
		}
		next, err := c.Replace().Get(ctx)
		if _, short := errors.AsType[*mpicx.SpareError](err); short {
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
	for n := 1; n <= 4; n++ {
		for k := 0; k <= 2; k++ {
			for victim := range n + k {
				t.Run(fmt.Sprintf("n%dk%dvictim%d", n, k, victim), func(t *testing.T) {
					replaceAtEveryMessage(t, n, n+k, victim, min(n-1, 1), mpicx.WithSpares(k))
				})
			}
		}
		for victim := range n + 2 {
			t.Run(fmt.Sprintf("n%dvictim%d", n, victim), func(t *testing.T) {
				for others := range min(n, 3) { // their deaths make a Replace necessary
					if n < 4 {
						replaceAtEveryMessage(t, n, n+2, victim, others, mpicx.WithRespawn(), mostFresh(8))
					}
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

func runWithRespawn(t *testing.T, ranks, most int, fn func(ctx context.Context, world *mpicx.Comm) error) error {
	t.Helper()
	oneProcess(t)
	return mpicx.Run(t.Context(), fn, mpicx.WithRanks(ranks), mpicx.WithRespawn(), mostFresh(most), hook.Backend[mpicx.Option]("ulfm"))
}

// What makes no sense is refused.
func TestRespawnRefused(t *testing.T) {
	oneProcess(t)
	none := func(context.Context, *mpicx.Comm) error { return nil }
	require.ErrorContains(t, mpicx.Run(t.Context(), none, mpicx.WithRespawn(), mpicx.WithSpares(2)), "WithRespawn and WithSpares(2)")
	require.NoError(t, mpicx.Run(t.Context(), none, mpicx.WithRespawn(), hook.Backend[mpicx.Option]("blackchannel")))
}
