package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Agree gives each group the AND of the other's; Shrink leaves out the dead of both; a group that
// has lost the other goes on.
func TestIntercommRepairs(t *testing.T) {
	mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		local, bridge, remoteLeader := beside(ctx, world, 2)
		ic, err := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3).Get(ctx)
		if err != nil {
			return err
		}
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
		_, err = ic.Agree(flags[world.Rank()]).Get(ctx)
		if dead, ok := errors.AsType[*mpicx.ProcFailedError](err); !ok || dead.Flag|3 != map[bool]int{true: -1 << 20 & -4, false: -3}[remoteLeader == 2]|3 {
			return fmt.Errorf("Agree with dead ranks: %+v", err)
		}
		own, remote := ic.Failed()
		if slices.Sort(own); !slices.Equal(append(own, remote...), []int{1, 1}) {
			return fmt.Errorf("dead are %v and %v", own, remote)
		}
		small, err := ic.Shrink().Get(ctx)
		if err != nil {
			return err
		}
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

// The analysis dies, and is left off: the solver goes on, with what is its own.
func TestIntercommOtherGroupDies(t *testing.T) {
	propagating(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		solver, bridge, remoteLeader := beside(ctx, world, 3)
		ic, err := mpicx.CreateIntercomm(solver, 0, bridge, remoteLeader, 3).Get(ctx)
		if err != nil {
			return err
		}
		if world.Rank() >= 3 {
			mpicxtest.Die(world)
		}
		for err == nil {
			err = mpicx.InterBcast(ic, []int{1}, ic.Own(0)).Wait(ctx)
		}
		if !corrupted(err) {
			return err
		}
		return exchange(ctx, solver, 0)
	})
}
