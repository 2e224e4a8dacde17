package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// These programs are the ways of paper 003 to make an inter-communicator. Its author rejects one
// after the other. The programs make a duplicate of the world, and the ranks that have it use it.

// naive is MPI_Intercomm_create as it is: the leaders exchange a letter, and pass it on.
func naive(ctx context.Context, local, bridge *mpicx.Comm, remoteLeader int) error {
	if local.Rank() == 0 {
		if _, err := exchanged(ctx, bridge, remoteLeader, 7, 1); err != nil {
			return err
		}
	}
	return mpicx.Bcast(local, []int{0}, 0).Wait(ctx)
}

// exchanged sends the other leader a number and returns the one that comes from there.
func exchanged(ctx context.Context, bridge *mpicx.Comm, remoteLeader, tag, number int) (other int, err error) {
	got := []int{0}
	recv := mpicx.Recv(bridge, got, remoteLeader, tag)
	err = future.WaitAll(ctx, mpicx.Send(bridge, []int{number}, remoteLeader, tag), recv)
	return got[0], err
}

// byBarriers has a barrier of the group, and one of both where it exists.
func byBarriers(ctx context.Context, local, bridge, both *mpicx.Comm, remoteLeader int) (made bool) {
	err := naive(ctx, local, bridge, remoteLeader)
	if other := local.Barrier().Wait(ctx); err == nil {
		err = other
	}
	return err == nil && both.Barrier().Wait(ctx) == nil
}

// byLeaders has the groups agree, then the leaders, then the groups on what these have found.
func byLeaders(ctx context.Context, local, bridge, _ *mpicx.Comm, remoteLeader int) (made bool) {
	flag := agreed(ctx, local, btoi(naive(ctx, local, bridge, remoteLeader) == nil))
	if local.Rank() == 0 {
		other, err := exchanged(ctx, bridge, remoteLeader, 8, flag)
		flag &= other & btoi(err == nil)
	}
	return agreed(ctx, local, flag) == 1
}

// agreed returns the flag on which the living ranks have agreed, no matter which ranks have died.
func agreed(ctx context.Context, c *mpicx.Comm, flag int) int {
	flag, err := c.Agree(flag).Get(ctx)
	if dead, ok := errors.AsType[*mpicx.ProcFailedError](err); ok {
		flag = dead.Flag
	}
	return flag
}

func ours(ctx context.Context, local, bridge, _ *mpicx.Comm, remoteLeader int) (made bool) {
	return mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 7).Wait(ctx) == nil
}

type way func(ctx context.Context, local, bridge, both *mpicx.Comm, remoteLeader int) (made bool)

// differ says whether some survivors of a plan have made it and others have not.
func (w way) differ(t *testing.T, plan string) (killed int, differ bool) {
	const n = 5
	var made, begun [n]bool
	died := mpicxtest.RunFaults(t, n, plan, func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		both := world.Dup().MustGet(ctx)
		local, bridge, remoteLeader, err := groups(ctx, world, 2)
		if err != nil {
			return err
		}
		begun[world.Rank()] = true
		made[world.Rank()] = w(ctx, local, bridge, both, remoteLeader)
		return nil
	})
	count := map[bool]int{}
	for r := range n {
		if begun[r] && !slices.Contains(died, r) {
			count[made[r]]++
		}
	}
	return len(died), count[true] > 0 && count[false] > 0
}

// With the paper's ways, deaths can leave some living ranks with a communicator and others with an
// error; with CreateIntercomm they can't. One death in the last barrier is enough. After agreements
// it takes two: a rank that dies before its group has the letter, and then the leader of the other
// group, the only rank that knows of the first death. (On a board a barrier is made by all or none.)
func TestIntercommWaysOfThePaper(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	collective.Forced = map[string]string{"Barrier": "tree"}
	defer func() { collective.Forced = nil }()
	count := func(name string, w way, plans ...string) (differ int) {
		deaths := 0
		for _, plan := range plans {
			killed, split := w.differ(t, plan)
			deaths += min(killed, 1)
			differ += btoi(killed > 0 && split)
		}
		t.Logf("%s: made at some survivors and not at others in %d of %d runs with deaths", name, differ, deaths)
		return differ
	}
	var barriers, leaders []string
	for r := range 5 {
		for k := 1; k <= 6; k++ {
			barriers = append(barriers, fmt.Sprintf("kill %d in Barrier step %d call 2", r, k))
		}
	}
	for m := 1; m <= 8; m++ {
		leaders = append(leaders, fmt.Sprintf("kill 4 in Bcast step 1; kill 0 in agree message %d", m))
	}
	require.NotZero(t, count("by barriers", byBarriers, barriers...))
	require.NotZero(t, count("by agreements of the leaders", byLeaders, leaders...))
	for k := 1; k <= 8; k++ {
		for r := range 5 {
			leaders = append(leaders, fmt.Sprintf("kill %d in createintercomm message %d; kill 4 at operation 6", r, k))
		}
	}
	require.Zero(t, count("CreateIntercomm", ours, append(barriers, leaders...)...))
}

// If a whole group fails and no rank dies, the other group waits forever in the barrier of both.
// No rank can tell it, because the failed group does not have the communicator of the barrier.
func TestIntercommHalfMade(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, w := range map[string]way{"barriers": byBarriers, "ours": ours} {
		t.Run(name, func(t *testing.T) {
			var stuck [5]bool
			mpicxtest.Run(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
				world.SetErrhandler(mpicx.ErrorsReturn)
				both := world.Dup().MustGet(ctx)
				local, bridge, remoteLeader, err := groups(ctx, world, 2)
				if err != nil {
					return err
				}
				defer func() {
					time.Sleep(time.Hour)                 // nobody leaves, which ends what others wait for
					_ = both.Revoke(context.Background()) // Run would wait for a barrier
				}()
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				if world.Rank() == 4 {
					time.Sleep(time.Second) // the leaders have met
					return local.Revoke(ctx)
				}
				if w(ctx, local, bridge, both, remoteLeader) {
					return errors.New("made")
				}
				stuck[world.Rank()] = ctx.Err() != nil
				return nil
			})
			require.Equal(t, [5]bool{name == "barriers", name == "barriers"}, stuck)
		})
	}
}
