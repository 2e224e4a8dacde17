package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// mortal runs fn at ranks that return the ULFM errors.
//
// Under mpirun a test of this file has a job of its own, because processes die in it; a
// test elsewhere begins with oneProcess.
func mortal(t *testing.T, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel cannot see a process die")
	}
	mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		return fn(ctx, world)
	})
}

// propagating is mortal with ErrorsPropagate.
func propagating(t *testing.T, ranks int, fn func(ctx context.Context, world *mpicx.Comm) error) {
	t.Helper()
	mortal(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsPropagate)
		return fn(ctx, world)
	})
}

// deadIs checks that err is a *ProcFailedError of these ranks.
func deadIs(err error, ranks ...int) error {
	if f, ok := errors.AsType[*mpicx.ProcFailedError](err); !ok || !slices.Equal(f.Ranks, ranks) {
		return fmt.Errorf("got %v, expected that ranks %v have died", err, ranks)
	}
	return nil
}

// corruptedBy checks that err is a *CommCorruptedError with these dead.
func corruptedBy(err error, ranks ...int) error {
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || !slices.Equal(c.Dead, ranks) {
		return fmt.Errorf("got %v, expected a corruption with %v dead", err, ranks)
	}
	return nil
}

// allowed checks err against what it may be.
func allowed(err error, want func(error) bool) error {
	if !want(err) {
		return fmt.Errorf("unexpected %w", err)
	}
	return nil
}

func procFailed(err error) bool {
	_, ok := errors.AsType[*mpicx.ProcFailedError](err)
	return ok
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// H1: what involves a dead process ends, whatever it is, before and after the
// death; what does not goes on.
func TestH1Involved(t *testing.T) {
	mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 3:
			if err := mpicx.Recv(world, []int{0}, 0, 9).Wait(ctx); err != nil {
				return err
			}
			mpicxtest.Die(world)
		case 0:
			recv := mpicx.Recv(world, []int{0}, 3, 1)
			slice := mpicx.RecvSlice[int](world, 3, 1)
			value := mpicx.RecvValue[string](world, 3, 1)
			probe := mpicx.Probe[int](world, 3, 1)
			ssend := mpicx.Ssend(world, []int{1}, 3, 1)
			long := mpicx.Send(world, make([]int, 10000), 3, 1)
			barrier := world.Barrier()
			if err := mpicx.Send(world, []int{1}, 3, 9).Wait(ctx); err != nil {
				return err
			}
			if err := deadIs(recv.Wait(ctx), 3); err != nil {
				return err
			}
			for range 2 {
				for i, f := range []future.Waiter{
					slice, value, probe, ssend, long, barrier, mpicx.Recv(world, []int{0}, 3, 1),
					mpicx.Send(world, []int{0}, 3, 1), mpicx.SendValue(world, 1, 3, 1), world.Barrier(),
					mpicx.Bcast(world, []int{1}, 0), mpicx.AllgatherValue(world, 1), world.Dup(), world.Split(0, 0),
				} {
					if err := deadIs(f.Wait(ctx), 3); err != nil {
						return fmt.Errorf("operation %d: %w", i, err)
					}
				}
			}
		default:
			if err := deadIs(world.Barrier().Wait(ctx), 3); err != nil {
				return err
			}
			for range 2 {
				if err := deadIs(world.Dup().Wait(ctx), 3); err != nil {
					return err
				}
				if err := deadIs(world.Split(0, 0).Wait(ctx), 3); err != nil {
					return err
				}
			}
		}
		for r := range 3 { // all to all among the living
			if err := mpicx.Send(world, []int{world.Rank()}, r, 5).Wait(ctx); err != nil {
				return err
			}
		}
		for r := range 3 {
			got := []int{-1}
			if err := mpicx.Recv(world, got, r, 5).Wait(ctx); err != nil || got[0] != r {
				return fmt.Errorf("from rank %d: %v %w", r, got, err)
			}
		}
		return nil
	})
}

// Nobody is told who does not need to know: without an operation that involves the
// dead, ErrorsPropagate tells nobody either.
func TestH1NobodyIsTold(t *testing.T) {
	propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			mpicxtest.Die(world)
		}
		peer := 2 - world.Rank()
		send := mpicx.Send(world, []int{7}, peer, 0)
		got := []int{0}
		if err := mpicx.Recv(world, got, peer, 0).Wait(ctx); err != nil || got[0] != 7 {
			return fmt.Errorf("%v %w", got, err)
		}
		return first(send.Wait(ctx), world.Err())
	})
}

// A message that was there before its sender died is received; one that a receive
// had matched even more so.
func TestMessageOfTheDead(t *testing.T) {
	mortal(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			for tag := range 3 {
				if err := mpicx.Send(world, []int{tag}, 0, tag).Wait(ctx); err != nil {
					return err
				}
			}
			mpicx.Ssend(world, []int{3}, 0, 3) // of which the bytes die with it
			mpicxtest.Die(world)
		}
		matched := mpicx.Recv(world, []int{0}, 1, 0)
		if err := deadIs(mpicx.Recv(world, []int{0}, 1, 4).Wait(ctx), 1); err != nil {
			return err
		}
		return first(matched.Wait(ctx), mpicx.Recv(world, []int{0}, mpicx.AnySource, 2).Wait(ctx),
			mpicx.Recv(world, []int{0}, 1, 1).Wait(ctx), deadIs(mpicx.Recv(world, []int{0}, 1, 3).Wait(ctx), 1))
	})
}

// What a rank sent last, before it died, keeps nobody else's messages from coming,
// however long it was and though the receiver looked only later.
func TestLastWordsOfTheDead(t *testing.T) {
	for _, words := range []int{1, 490, 750, 1020, 50_000} { // a packet of Open MPI's is 4 KiB
		t.Run(fmt.Sprint(words), func(t *testing.T) {
			mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				const messages = 50
				switch world.Rank() {
				case 1:
					mpicx.Send(world, make([]int, words), 0, 1)
					mpicxtest.Die(world)
				case 2:
					for i := range messages {
						mpicx.Send(world, []int{i}, 0, 2).MustWait(ctx)
					}
					return allowed(mpicx.Recv(world, []int{0}, 0, 3).Wait(ctx), func(err error) bool { return err == nil })
				}
				err := deadIs(mpicx.Recv(world, []int{0}, 1, 2).Wait(ctx), 1)
				for i := range messages {
					got := []int{-1}
					err = first(err, mpicx.Recv(world, got, 2, 2).Wait(ctx), allowed(nil, func(error) bool { return got[0] == i }))
				}
				return first(err, mpicx.Send(world, []int{0}, 2, 3).Wait(ctx))
			})
		})
	}
}

// H2: the first to meet the dead tells all, also those that wait for the living;
// the error is the same everywhere and stays.
func TestH2Propagate(t *testing.T) {
	for _, victim := range []int{0, 2, 4} {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			propagating(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
				me := world.Rank()
				if me == victim {
					mpicxtest.Die(world)
				}
				err := world.Guard(ctx, func(ctx context.Context) error { // a chain, of which only one waits for the dead
					return mpicx.Recv(world, []int{0}, (me+1)%5, 0).Wait(ctx)
				})
				if err := corruptedBy(err, victim); err != nil {
					return err
				}
				if again := world.Barrier().Wait(ctx); again != err {
					return fmt.Errorf("%w follows %w", again, err)
				}
				return allowed(nil, func(error) bool { return slices.Equal(world.Failed(), []int{victim}) })
			})
		})
	}
}

// A soft error on a communicator of which a rank has died is a corruption.
func TestSoftErrorFindsTheDead(t *testing.T) {
	propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 2:
			mpicxtest.Die(world)
		case 0:
			return corruptedBy(world.SignalError(ctx, 5), 2)
		}
		return corruptedBy(mpicx.Recv(world, []int{0}, 0, 0).Wait(ctx), 2)
	})
}

// H3: a receive from anybody reports a death, stays pending, and goes on once all
// known deaths are acknowledged. Collective operations stay broken.
func TestH3AnySource(t *testing.T) {
	mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		switch me := world.Rank(); me {
		case 0:
			got := []int{0}
			recv := mpicx.Recv(world, got, mpicx.AnySource, 1)
			other := mpicx.RecvSlice[int](world, mpicx.AnySource, 1)
			if err := recv.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("Wait: %w", err)
			}
			if err := deadIs(mpicx.Recv(world, []int{0}, 1, 3).Wait(ctx), 1); err != nil {
				return err
			}
			if done, err := recv.Test(); done || !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("Test: %t %w", done, err)
			}
			if i, err := future.WaitAny(ctx, mpicx.Recv(world, []int{0}, 4, 7), other); i != 1 || !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("WaitAny: %d %w", i, err)
			}
			if i, err := future.WaitAny(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7)); i != 1 || !procFailed(err) {
				return fmt.Errorf("WaitAny prefers what is done: %d %w", i, err)
			}
			if err := future.WaitAll(ctx, recv, mpicx.Recv(world, []int{0}, 1, 7), other); !procFailed(err) {
				return fmt.Errorf("WaitAll prefers what is final: %w", err)
			}
			if err := future.WaitAll(ctx, recv, other); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("WaitAll: %w", err)
			}
			for len(world.Failed()) < 2 { // the second one dies some time
				if err := mpicx.Recv(world, []int{0}, 3, 3).Wait(ctx); !procFailed(err) {
					return err
				}
			}
			failed := world.Failed()
			if n := world.AckFailed(1); n != 1 {
				return fmt.Errorf("%d acknowledged", n)
			}
			if err := recv.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("one of two acknowledged: %w", err)
			}
			if n := world.AckFailed(9); n != 2 || !slices.Equal(world.Failed(), failed) {
				return fmt.Errorf("%d acknowledged of %v", n, world.Failed())
			}
			if done, err := recv.Test(); done || err != nil {
				return fmt.Errorf("acknowledged: %t %w", done, err)
			}
			mpicx.Send(world, []int{1}, 2, 2)
			if s, err := recv.Get(ctx); err != nil || s.Source != 2 || got[0] != 42 {
				return fmt.Errorf("%v %v %w", s, got, err)
			}
			return first(mpicx.Send(world, []int{1}, 4, 2).Wait(ctx), other.Wait(ctx), allowed(world.Barrier().Wait(ctx), procFailed))
		case 1, 3:
			mpicxtest.Die(world)
		default:
			if err := mpicx.Recv(world, []int{0}, 0, 2).Wait(ctx); err != nil {
				return err
			}
			return mpicx.Send(world, []int{42}, 0, 1).Wait(ctx)
		}
		return nil
	})
}

// A receive from anybody that begins after the death knows it too, unless its
// message is there; under ErrorsPropagate it corrupts.
func TestH3AnySourceAfterwards(t *testing.T) {
	program := func(ctx context.Context, world *mpicx.Comm, pending func(error) error) error {
		switch world.Rank() {
		case 1:
			mpicxtest.Die(world)
		case 2:
			return mpicx.Send(world, []int{1}, 0, 1).Wait(ctx)
		}
		return first(mpicx.Probe[int](world, 2, 1).Wait(ctx), deadIsOrNil(world, ctx),
			mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx),
			pending(mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)))
	}
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		return program(ctx, world, func(err error) error {
			return allowed(err, func(err error) bool { return errors.Is(err, mpicx.ErrProcFailedPending) })
		})
	})
}

// deadIsOrNil waits until this rank knows that rank 1 has died.
func deadIsOrNil(world *mpicx.Comm, ctx context.Context) error {
	return deadIs(mpicx.Recv(world, []int{0}, 1, 9).Wait(ctx), 1)
}

func TestH3PropagateAnySource(t *testing.T) {
	propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			mpicxtest.Die(world)
		}
		return corruptedBy(mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx), 1)
	})
}

// H4: after Revoke every operation of every rank ends, those that repair excepted,
// and Revoke may be called by all.
func TestH4Revoke(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 33} {
		mortal(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me := world.Rank()
			dup, err := world.Dup().Get(ctx)
			if err != nil {
				return err
			}
			if err := dup.Barrier().Wait(ctx); err != nil { // else the revoke may come before the agreement on dup
				return err
			}
			pending := mpicx.Recv(world, []int{0}, (me+1)%n, 1)
			if me == n/2 || me == 0 {
				if err := first(world.Revoke(ctx), world.Revoke(ctx)); err != nil || !world.Revoked() {
					return fmt.Errorf("revoked %t: %w", world.Revoked(), err)
				}
			}
			revoked := func(err error) bool { return errors.Is(err, mpicx.ErrRevoked) }
			if err := first(allowed(pending.Wait(ctx), revoked), allowed(world.Barrier().Wait(ctx), revoked),
				allowed(mpicx.Send(world, []int{1}, me, 0).Wait(ctx), revoked), allowed(world.Err(), revoked),
				allowed(world.Split(0, 0).Wait(ctx), revoked), allowed(world.SignalError(ctx, 1), revoked)); err != nil {
				return err
			}
			flag, err := world.Agree(^(1 << me)).Get(ctx)
			if want := -1 << n; err != nil || flag != want {
				return fmt.Errorf("agreed on %b, %w", flag, err)
			}
			small, err := world.Shrink().Get(ctx)
			if err != nil || small.Size() != n || small.Rank() != me {
				return fmt.Errorf("shrunk: %v %w", small, err)
			}
			// Others do not notice.
			return first(exchange(ctx, small, 1), exchange(ctx, dup, 2), small.Close(ctx), dup.Close(ctx), world.Close(ctx))
		})
	}
}

// Under ErrorsPropagate Revoke corrupts.
func TestRevokePropagates(t *testing.T) {
	propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			if err := world.Revoke(ctx); err != nil {
				return err
			}
		}
		err := world.Barrier().Wait(ctx)
		c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
		if !ok || len(c.Failures) != 1 || c.Failures[0].Rank != 1 || !world.Revoked() {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// H5: Agree ends with the same flag and error at all survivors; the error is
// suppressed once all have acknowledged, and not before.
func TestH5Agree(t *testing.T) {
	for _, victim := range []int{0, 1, 4} {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
				me := world.Rank()
				if me == victim {
					mpicxtest.Die(world)
				}
				if me == 2 {
					if err := world.Revoke(ctx); err != nil {
						return err
					}
				}
				_, err := world.Agree(^(1 << me)).Get(ctx)
				f, ok := errors.AsType[*mpicx.ProcFailedError](err)
				if !ok || !slices.Equal(f.Ranks, []int{victim}) || f.Flag|1<<victim != -1<<5|1<<victim {
					return fmt.Errorf("first: %w", err)
				}
				if me != 3 {
					world.AckFailed(len(world.Failed()))
				}
				if err := deadIs(world.Agree(1).Wait(ctx), victim); err != nil {
					return fmt.Errorf("one has not acknowledged: %w", err)
				}
				world.AckFailed(len(world.Failed()))
				flag, err := world.Agree(6 | me&1).Get(ctx)
				if err != nil || flag != 6 {
					return fmt.Errorf("all have acknowledged: %d %w", flag, err)
				}
				return nil
			})
		})
	}
}

// Ranks that call different operations in one place are all told.
func TestAgreeMeetsShrink(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		var err error
		if world.Rank() == 1 {
			err = world.Shrink().Wait(ctx)
		} else {
			err = world.Agree(1).Wait(ctx)
		}
		if m, ok := errors.AsType[*mpicx.MPIError](err); !ok || !strings.Contains(m.Text, "Agree and Shrink") {
			return fmt.Errorf("got %w", err)
		}
		return world.Agree(1).Wait(ctx) // and go on
	})
}

// Ranks that differ in what they had begun when they heard of a revoke agree all
// the same.
func TestRevokeMeetsDup(t *testing.T) {
	mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		for round := range 100 {
			comm := world.Dup().MustGet(ctx)
			comm.SetErrhandler(mpicx.ErrorsReturn)
			for range (round + world.Rank()) % 3 {
				runtime.Gosched()
			}
			var made *mpicx.Comm
			var err error
			if world.Rank() == round%4 {
				err = comm.Revoke(ctx)
			} else if made, err = comm.Dup().Get(ctx); err == nil { // so all have begun to, but the one
				return errors.New("a communicator of three ranks")
			}
			if err != nil && !errors.Is(err, mpicx.ErrRevoked) || made != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if flag, err := comm.Agree(^(1 << world.Rank())).Get(ctx); flag != -1<<4 || err != nil {
				return fmt.Errorf("round %d: agreed on %d, %w", round, flag, err)
			}
			if err := comm.Shrink().MustGet(ctx).Close(ctx); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	})
}

// What was done before a revoke keeps its result; what was pending ends with it.
func TestRevokeKeepsResults(t *testing.T) {
	mortal(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		got := []int{0}
		done, pending := mpicx.Recv(world, got, 1-world.Rank(), 1), mpicx.Recv(world, []int{0}, 1-world.Rank(), 2)
		mpicx.Send(world, []int{7}, 1-world.Rank(), 1).MustWait(ctx)
		<-done.Done()
		if err := world.Revoke(ctx); err != nil {
			return err
		}
		if err := done.Wait(ctx); got[0] != 7 && !errors.Is(err, mpicx.ErrRevoked) || got[0] == 7 && err != nil {
			return fmt.Errorf("got %d: %w", got[0], err) // the peer's revoke may have overtaken its message
		}
		if err := pending.Wait(ctx); !errors.Is(err, mpicx.ErrRevoked) {
			return fmt.Errorf("pending: %w", err)
		}
		return world.Agree(1).Wait(ctx)
	})
}

// Who has a communicator that others gave up because of a revoke is told at its
// first use.
func TestRevokeWhileCreating(t *testing.T) {
	for seed := range uint64(200) {
		mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
			rnd := rand.New(rand.NewPCG(seed, uint64(world.Rank())))
			made := world.Dup()
			for range rnd.IntN(20) {
				runtime.Gosched()
			}
			if world.Rank() == int(seed%5) {
				if err := world.Revoke(ctx); err != nil {
					return err
				}
			}
			d, err := made.Get(ctx)
			if err == nil {
				err = d.Barrier().Wait(ctx)
			}
			if err != nil && !errors.Is(err, mpicx.ErrRevoked) {
				return err
			}
			return world.Agree(1).Wait(ctx)
		})
	}
}

// A rank that leaves Run by an error corrupts what its peers use in the place of a
// world that is of no use any more.
func TestRunCorruptsWhatIsUsed(t *testing.T) {
	oneProcess(t)
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel cannot shrink")
	}
	bug := errors.New("a bug")
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			return errors.New("the first")
		}
		if err := world.Barrier().Wait(ctx); !corrupted(err) {
			return fmt.Errorf("got %w", err)
		}
		small := world.Shrink().MustGet(ctx)
		if small.Rank() == 1 {
			return bug
		}
		err := small.Barrier().Wait(ctx)
		if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || len(c.Failures) != 1 || c.Failures[0].Message != bug.Error() {
			return fmt.Errorf("got %w", err)
		}
		return nil
	}, mpicx.WithRanks(4))
	require.ErrorIs(t, err, bug)
	require.NotContains(t, err.Error(), "got")
}

// Under ErrorsReturn nobody is told why a rank left Run by an error, but that it is
// dead: who receives from anybody, too.
func TestErrorsReturnSeesWhoFailed(t *testing.T) {
	oneProcess(t)
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel sees nobody die")
	}
	bug := errors.New("a bug")
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() > 0 {
			return bug
		}
		recv := mpicx.Recv(world, []int{0}, mpicx.AnySource, 0)
		for range world.Size() - 1 {
			if err := recv.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
				return fmt.Errorf("got %w", err)
			}
			world.AckFailed(len(world.Failed()))
		}
		return nil
	}, mpicx.WithRanks(2))
	require.ErrorIs(t, err, bug)
	require.NotContains(t, err.Error(), "got")
}

// meet lets no living rank go on before all have come, by messages between each
// two.
func meet(ctx context.Context, c *mpicx.Comm, dead int) error {
	var all []future.Waiter
	for r := range c.Size() {
		if r != dead {
			all = append(all, mpicx.Ssend(c, []int{0}, r, 1000), mpicx.Recv(c, []int{0}, r, 1000))
		}
	}
	return future.WaitAll(ctx, all...)
}

// H5: Shrink, again and again, until one is left.
func TestH5Shrink(t *testing.T) {
	propagating(t, 6, func(ctx context.Context, world *mpicx.Comm) error {
		comm := world
		for left := 6; ; left-- {
			if comm.Size() != left {
				return fmt.Errorf("%v has %d ranks, expected %d", comm, comm.Size(), left)
			}
			err := meet(ctx, comm, -1)
			if left == 1 {
				return comm.Close(ctx)
			}
			if comm.Rank() == left/2 {
				mpicxtest.Die(world)
			}
			if err == nil { // else others are ahead
				err = comm.Barrier().Wait(ctx)
			}
			if err := corruptedBy(err, left/2); err != nil {
				return err
			}
			if _, err := comm.Agree(1).Get(ctx); !procFailed(err) {
				return fmt.Errorf("Agree on a corrupted communicator: %w", err)
			}
			small, err := comm.Shrink().Get(ctx)
			if err != nil {
				return err
			}
			if err := comm.Close(ctx); err != nil {
				return err
			}
			comm = small
		}
	})
}

// A rank that returns while others need it, or panics outside of Guard, is dead
// for them: Shrink excludes it.
func TestReturningIsDying(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			return nil
		}
		if err := deadIs(mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx), 1); err != nil {
			return err
		}
		small, err := world.Shrink().Get(ctx)
		if err != nil || small.Size() != 2 {
			return fmt.Errorf("%v %w", small, err)
		}
		return exchange(ctx, small, 0)
	})
	t.Run("agree", func(t *testing.T) { // nobody waits for it by a message
		mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank()%2 == 0 {
				return nil
			}
			if err := deadIs(world.Agree(1).Wait(ctx), 0, 2); err != nil {
				return err
			}
			small, err := world.Shrink().Get(ctx)
			if err != nil || small.Size() != 2 {
				return fmt.Errorf("%v %w", small, err)
			}
			return exchange(ctx, small, 0)
		})
	})
	if mpicx.Backend != "ulfm" {
		return
	}
	oneProcess(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 2 {
			panic("boom")
		}
		if err := world.Barrier().Wait(ctx); corruptedBy(err, 2) != nil || len(err.(*mpicx.CommCorruptedError).Failures) != 1 {
			return fmt.Errorf("got %w", err)
		}
		small, err := world.Shrink().Get(ctx)
		if err != nil || small.Size() != 3 {
			return fmt.Errorf("%v %w", small, err)
		}
		return small.Close(ctx)
	}, mpicx.WithRanks(4))
	var p *mpicx.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, 2, p.Rank)
	require.NotContains(t, err.Error(), "got")
}

// A rank that returns and is not needed any more is not missed.
func TestReturningIsNoFailure(t *testing.T) {
	propagating(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		for r := range me { // ranks return one after another
			if err := mpicx.Recv(world, []int{0}, r, 0).Wait(ctx); err != nil {
				return err
			}
		}
		for r := me + 1; r < 5; r++ {
			if err := mpicx.Send(world, []int{me}, r, 0).Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// The rank that unwound may repair at once, with the others.
func TestUnwindAndShrink(t *testing.T) {
	propagating(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		err := world.Guard(ctx, func(ctx context.Context) error {
			if me == 1 {
				return errors.New("unwound")
			}
			return world.Barrier().Wait(ctx)
		})
		if err == nil {
			return errors.New("Guard returned nil")
		}
		flag, err := world.Agree(^(1 << me)).Get(ctx)
		if err != nil || flag != -1<<4 {
			return fmt.Errorf("agreed on %b, %w", flag, err)
		}
		small, err := world.Shrink().Get(ctx)
		if err != nil || small.Size() != 4 {
			return fmt.Errorf("%v %w", small, err)
		}
		return exchange(ctx, small, 0)
	})
}

// A death while communicators are made gives every survivor an error or none.
func TestDeathWhileSplitting(t *testing.T) {
	mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 3 {
			world.Split(0, 0)
			mpicxtest.Die(world)
		}
		_, err := world.Split(0, 0).Get(ctx)
		flag := 0
		if err == nil {
			flag = 1
		}
		world.AckFailed(len(world.Failed()))
		agreed, agreeErr := world.Agree(flag).Get(ctx)
		if f, ok := errors.AsType[*mpicx.ProcFailedError](agreeErr); ok {
			agreed = f.Flag
		}
		if agreed != flag {
			return fmt.Errorf("agreed on %d, but here %w", agreed, err)
		}
		return nil
	})
}

// A death corrupts the communicator that it was met on, and those made of it that
// the dead belonged to; others go on.
func TestDeathInFamily(t *testing.T) {
	propagating(t, 6, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		part, err := world.Split(me%2, 0).Get(ctx)
		if err != nil {
			return err
		}
		if err := meet(ctx, world, -1); err != nil {
			return err
		}
		if me == 4 {
			mpicxtest.Die(world)
		}
		if me%2 == 0 {
			if err := corruptedBy(part.Barrier().Wait(ctx), 2); err != nil { // rank 2 of its part
				return err
			}
			if part, err = part.Shrink().Get(ctx); err != nil {
				return err
			}
		}
		if err := exchange(ctx, part, 0); err != nil {
			return err
		}
		if err = meet(ctx, world, 4); err == nil { // else another is there already
			err = world.Barrier().Wait(ctx)
		}
		if err := corruptedBy(err, 4); err != nil {
			return err
		}
		if me%2 == 0 {
			return nil // its part is derived from one that is corrupted anyhow
		}
		return allowed(part.Barrier().Wait(ctx), func(err error) bool { return err == nil || corruptedBy(err, 4) == nil })
	})
}

// All goroutines of a rank end when it dies; others may learn at different times.
func TestDyingWithGoroutines(t *testing.T) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			for range 3 {
				go func() {
					_ = mpicx.Recv(world, []int{0}, 0, 77).Wait(ctx)
					panic("goes on")
				}()
			}
			go func() {
				_, _ = world.Agree(1).Get(ctx)
				panic("goes on")
			}()
			mpicxtest.Die(world)
		}
		errs := make(chan error)
		for range 2 {
			go func() { errs <- mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx) }()
		}
		return first(deadIs(<-errs, 1), deadIs(<-errs, 1))
	})
}
