package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Under ErrorsReturn the peers of a rank that has left Run by an error learn that it is dead, but
// not why. That includes a peer that receives from AnySource.
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
			mpicx.Throw(expect(recv.Wait(ctx), mpicx.ErrProcFailedPending))
			world.AckFailed(len(world.Failed()))
		}
		return nil
	}, mpicx.WithRanks(2))
	require.ErrorIs(t, err, bug)
	require.NotContains(t, err.Error(), "got")
}

// A rank that returns while others need it, or panics outside of Guard, is dead
// for them: Shrink excludes it.
func TestReturningIsDying(t *testing.T) {
	mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank()%2 == 0 {
			return nil
		}
		mpicx.Throw(deadIs(world.Agree(1).Wait(ctx), 0, 2)) // nobody waits for them by a message
		return shrinks(ctx, world, 2)
	})
	oneProcess(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 2 {
			panic("boom")
		}
		if err := world.Barrier().Wait(ctx); corruptedBy(err, 2) != nil || len(err.(*mpicx.CommCorruptedError).Failures) != 1 {
			return fmt.Errorf("got %w", err)
		}
		return shrinks(ctx, world, 3)
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
			mpicx.Recv(world, []int{0}, r, 0).MustWait(ctx)
		}
		for r := me + 1; r < 5; r++ {
			mpicx.Send(world, []int{me}, r, 0).MustWait(ctx)
		}
		return nil
	})
}

// A rank that leaves Run by an error also corrupts the communicators that its peers use instead of
// a world that is broken.
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
		mpicx.Throw(isA[*mpicx.CommCorruptedError](world.Barrier().Wait(ctx)))
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

// Agree gives each group the AND of the other group's flags. Shrink leaves out the dead of both. A
// group that has lost the other continues.
func TestIntercommRepairs(t *testing.T) {
	mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		local, bridge, remoteLeader := beside(ctx, world, 2)
		ic := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3).MustGet(ctx)
		flags := []int{-3, 7, -1 << 20, -2, -4}                                            // by rank of world
		others := map[bool]int{true: -1 << 20 & -2 & -4, false: -3 & 7}[remoteLeader == 2] // of whose flags
		if got, err := ic.Agree(flags[world.Rank()]).Get(ctx); err != nil || got != others {
			return fmt.Errorf("Agree: %d, %v, expected %d", got, err, others)
		}
		if _, err := ic.Agree(math.MaxInt).Get(ctx); err == nil {
			return errors.New("a flag of all bits")
		}
		if world.Rank() == 1 || world.Rank() == 3 {
			mpicxtest.Die(world)
		}
		_, err := ic.Agree(flags[world.Rank()]).Get(ctx)
		if dead, ok := errors.AsType[*mpicx.ProcFailedError](err); !ok || dead.Flag|3 != map[bool]int{true: -1 << 20 & -4, false: -3}[remoteLeader == 2]|3 {
			return fmt.Errorf("Agree with dead ranks: %+v", err)
		}
		own, remote := ic.Failed()
		if slices.Sort(own); !slices.Equal(append(own, remote...), []int{1, 1}) {
			return fmt.Errorf("dead are %v and %v", own, remote)
		}
		small := ic.Shrink().MustGet(ctx)
		sum := []int{0}
		err = mpicx.InterAllreduce(small, []int{1}, sum, mpicx.Sum).Wait(ctx) // of which some are dead by the time others have it
		if err != nil && !procFailed(err) || err == nil && sum[0] != small.RemoteSize() || small.Size()+small.RemoteSize() != 3 {
			return fmt.Errorf("after Shrink: %d of %d and %d, %v", sum[0], small.Size(), small.RemoteSize(), err)
		}
		if world.Rank() > 1 {
			mpicxtest.Die(world)
		}
		alone, err := small.Shrink().Get(ctx)
		for alone != nil && alone.RemoteSize() > 0 && err == nil { // not all have died
			alone, err = alone.Shrink().Get(ctx)
		}
		return err
	})
}
