package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Under ErrorsReturn the peers of a rank that has left Run by an error learn that it is dead, but
// not why. That includes a peer that receives from AnySource.
func TestErrorsReturnSeesWhoFailed(t *testing.T) {
	oneProcess(t)
	mpicxtest.NeedsULFM(t)
	require.EqualError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() > 0 {
			return errors.New("a bug")
		}
		return expect(mpicx.Recv(world, []int{0}, mpicx.AnySource, 0).Wait(ctx), mpicx.ErrProcFailedPending)
	}, mpicx.WithRanks(2)), "rank 1: a bug")
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
		err := world.Barrier().Wait(ctx)
		return first(corruptedBy(err, 2), corruption(err, 2, "boom"), shrinks(ctx, world, 3))
	}, mpicx.WithRanks(4))
	p, _ := errors.AsType[*mpicx.PanicError](err)
	require.Equal(t, 2, p.Rank)
	require.NotContains(t, err.Error(), "got")
}

// A rank that leaves Run by an error also corrupts the communicators that its peers use instead of
// a world that is broken.
func TestRunCorruptsWhatIsUsed(t *testing.T) {
	oneProcess(t)
	mpicxtest.NeedsULFM(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			return errors.New("the first")
		}
		mpicx.Throw(isA[*mpicx.CommCorruptedError](world.Barrier().Wait(ctx)))
		small := world.Shrink().MustGet(ctx)
		if small.Rank() == 1 {
			return errors.New("a bug")
		}
		return corruption(small.Barrier().Wait(ctx), 1, "a bug")
	}, mpicx.WithRanks(4))
	require.ErrorContains(t, err, "a bug")
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
		require.Equal(t, others, ic.Agree(flags[world.Rank()]).MustGet(ctx))
		require.Error(t, ic.Agree(math.MaxInt).Wait(ctx), "a flag of all bits")
		if world.Rank() == 1 || world.Rank() == 3 {
			mpicxtest.Die(world)
		}
		err := ic.Agree(flags[world.Rank()]).Wait(ctx)
		mpicx.Throw(isA[*mpicx.ProcFailedError](err))
		dead, _ := errors.AsType[*mpicx.ProcFailedError](err)
		require.Equal(t, map[bool]int{true: -1 << 20 & -4, false: -3}[remoteLeader == 2]|3, dead.Flag|3)
		own, remote := ic.Failed()
		require.Equal(t, []int{1, 1}, append(own, remote...))
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
