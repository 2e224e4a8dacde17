package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// An operation that is begun before the corruption of its communicator was told ends
// with that, and meets nothing of the ranks that repair it.
func TestRepairsMeetOnlyRepairs(t *testing.T) {
	oneProcess(t)
	for range 100 {
		var sizes sync.Map
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			child := dup(ctx, world)
			if world.Rank() == 0 { // busy in the parent
				mpicx.Recv(world, make([]int, 1), 1, 0).MustWait(ctx)
				_, err := child.Agree(1).Get(ctx)
				mpicx.Throw(isA[*mpicx.CommCorruptedError](err))
			} else {
				_ = child.Guard(ctx, fails(child, 1, errors.New("rank 1 leaves")))
				if world.Rank() == 1 {
					mpicx.Send(world, []int{1}, 0, 0).MustWait(ctx)
				}
			}
			living, err := child.Shrink().Get(ctx)
			if err != nil {
				return fmt.Errorf("Shrink: %w", err)
			}
			sizes.Store(world.Rank(), living.Size())
			return nil
		}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("ulfm")))
		sizes.Range(func(rank, size any) bool {
			require.Equal(t, 3, size, "rank %d", rank)
			return true
		})
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
		shrunk, err := world.Shrink().Get(ctx)
		if err != nil || shrunk.Size() != 3 {
			return fmt.Errorf("Shrink: %v, %w", shrunk, err)
		}
		return exchange(ctx, shrunk, 1)
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

// A program that ends while a Shrink of it is pending is left behind; the Shrink of the others
// is not disturbed.
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
			if err := small.Barrier().Wait(ctx); err != nil && !corrupted(err) {
				return err
			}
			return nil
		})
	}
}

// One that ends while a Split of it is pending counts as dead there, and joins the round in which
// the others tell each other.
func TestProgramEndsInSplit(t *testing.T) {
	for range 50 {
		propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			split := world.Split(0, 0)
			if world.Rank() == 2 {
				return nil
			}
			if err := split.Wait(ctx); err != nil && !corrupted(err) {
				return fmt.Errorf("Split: %v", err)
			}
			return nil
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

// againAndAgain has the members die one after another, each place as often as given, and returns
// nil at full strength.
func againAndAgain(times int) func(ctx context.Context, c *mpicx.Comm) error {
	return func(ctx context.Context, c *mpicx.Comm) error {
		for {
			all, err := mpicx.AllgatherValue(c, c.Incarnation()).Get(ctx)
			switch {
			case err != nil:
				if c, err = c.Replace().Get(ctx); err != nil {
					return err
				}
			case slices.Min(all) == times:
				return nil
			case c.Rank() == slices.Index(all, slices.Min(all)):
				mpicxtest.Die(c)
			}
		}
	}
}

// A job has its full size again after more deaths than there were ranks.
func TestRespawnAgain(t *testing.T) {
	require.NoError(t, runWithRespawn(t, 3, hook.Fresh, againAndAgain(10)))
}

// What makes no sense is refused.
func TestRespawnRefused(t *testing.T) {
	oneProcess(t)
	none := func(context.Context, *mpicx.Comm) error { return nil }
	require.ErrorContains(t, mpicx.Run(t.Context(), none, mpicx.WithRespawn(), mpicx.WithSpares(2)), "WithRespawn and WithSpares(2)")
	require.NoError(t, mpicx.Run(t.Context(), none, mpicx.WithRespawn(), hook.Backend[mpicx.Option]("blackchannel")))
}

// Whoever dies at whatever message: the survivors and the fresh ranks agree on who they are.
func TestRespawnAtEveryMessage(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for n := 1; n <= 3; n++ {
		for victim := range n + 2 {
			t.Run(fmt.Sprintf("n%dvictim%d", n, victim), func(t *testing.T) {
				for _, second := range []string{"", "; kill %d in replace message 1", "; kill %d in resolve message 1"} {
					for at := 1; ; at++ {
						plan := fmt.Sprintf("kill %d at operation %d", victim, at)
						if n == 1 && victim > 0 {
							break // nobody can start it
						}
						if second != "" {
							plan += fmt.Sprintf(second, (victim+1)%(n+2))
						}
						if !recoversByPlan(t, n, plan, victim, mpicx.WithRespawn(), mostFresh(8)) {
							break
						}
					}
				}
				for _, protocol := range []string{"replace", "resolve", "revoke", "agree", "shrink", "end"} {
					for others := range min(n, 3) { // their deaths make a Replace necessary
						for at := 1; ; at++ {
							plan := fmt.Sprintf("kill %d in %s message %d", victim, protocol, at)
							for i := range others {
								plan += fmt.Sprintf("; kill %d at operation %d", (min(victim, n-1)+1+i)%n, 3+i)
							}
							if !recoversByPlan(t, n, plan, victim, mpicx.WithRespawn(), mostFresh(8)) {
								break
							}
						}
					}
				}
			})
		}
	}
}

// The same with processes that are killed.
func TestRespawnProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, plan := range []string{
		"must kill 1 at operation 5",
		"must kill 1 at operation 5; must kill 4 at operation 2; kill 5 in resolve message 1; kill 0 at operation 12",
		"must kill 0 at operation 9; must kill 4 in replace message 1",
		"must kill 1 in replace message 1; must kill 2 at operation 3",
		"must kill 1 at operation 3; must kill 2 at operation 4; must kill 3 at operation 5",
	} {
		t.Run(plan, func(t *testing.T) {
			for rank, p := range mpicxtest.RunProcessFaults(t, 4, plan, recovering, mpicx.WithRespawn()) {
				require.True(t, p.Killed || p.Status == 0, "rank %d: status %d\n%s", rank, p.Status, p.Log) // no goroutine is left
			}
		})
	}
}
