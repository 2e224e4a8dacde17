package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// beside returns the two groups of world, its first ranks and the others, as CreateIntercomm takes
// them.
func beside(ctx context.Context, world *mpicx.Comm, first int) (local, bridge *mpicx.Comm, remoteLeader int) {
	color, remoteLeader := 0, first
	if world.Rank() >= first {
		color, remoteLeader = 1, 0
	}
	return world.Split(color, 0).MustGet(ctx), dup(ctx, world), remoteLeader
}

// Every operation between groups of all sizes.
func TestIntercommOperations(t *testing.T) {
	for _, sizes := range [][2]int{{1, 1}, {1, 3}, {2, 3}, {4, 1}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			runBoth(t, sizes[0]+sizes[1], func(ctx context.Context, world *mpicx.Comm) error {
				local, bridge, remoteLeader := beside(ctx, world, sizes[0])
				ic := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3).MustGet(ctx)
				me, n, m := ic.Rank(), ic.Size(), ic.RemoteSize()
				require.Equal(t, []int{local.Rank(), local.Size(), world.Size()}, []int{me, n, n + m})
				group := 1 // what this group's values begin with; the other's: 3 - group
				if world.Rank() >= sizes[0] {
					group = 2
				}
				value := func(group, rank int) int { return 100*group + rank }
				mine, theirs, sum := []int{value(group, me)}, make([]int, m), []int{0}
				for r := range m {
					theirs[r] = value(3-group, r)
				}
				rootedBetween(ctx, t, ic, mine, theirs)
				mpicx.InterAllreduce(ic, mine, sum, mpicx.Sum).MustWait(ctx)
				require.Equal(t, total(theirs), sum[0])
				send, recv := make([]int, group*m), make([]int, (3-group)*m) // as long as the group's number
				for i := range send {
					send[i] = 1000*mine[0] + i
				}
				mpicx.InterAlltoall(ic, send, recv).MustWait(ctx)
				for i, v := range recv {
					part := 3 - group
					require.Equal(t, 1000*theirs[i/part]+me*part+i%part, v)
				}
				merged := ic.Merge(group == 1).MustGet(ctx)
				require.Equal(t, me+map[int]int{1: m, 2: 0}[group], merged.Rank())
				return first(exchange(ctx, merged, 0), ic.Close(ctx))
			})
		})
	}
}

// rootedBetween carries out the operations between two ranks, and those that have a root.
func rootedBetween(ctx context.Context, t *testing.T, ic *mpicx.Intercomm, mine, theirs []int) {
	got := make([]int, len(theirs))
	for r := range theirs {
		mpicx.InterSend(ic, mine, r, 5).MustWait(ctx)
	}
	for r := range theirs {
		require.Equal(t, r, mpicx.InterRecv(ic, got[r:][:1], r, 5).MustGet(ctx).Source)
	}
	require.Equal(t, theirs, got)
	ic.Barrier().MustWait(ctx)
	for root := range ic.Union().Size() {
		isRoot := root == ic.Union().Rank()
		bcast, want := []int{-1}, root
		if isRoot {
			bcast[0] = root
		} else if own, _ := ic.Split([]int{root}); own != nil {
			want = -1 // it comes to the other group
		}
		mpicx.InterBcast(ic, bcast, root).MustWait(ctx)
		require.Equal(t, want, bcast[0], "from %d", root)
		clear(got)
		mpicx.InterGather(ic, mine, got, root).MustWait(ctx)
		if isRoot {
			require.Equal(t, theirs, got)
		}
	}
}

// A signal reaches both groups. One of a group's own communicator reaches that alone.
func TestIntercommSignals(t *testing.T) {
	runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		local, bridge, remoteLeader := beside(ctx, world, 2)
		ic := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3).MustGet(ctx)
		var err error
		if world.Rank() == 3 {
			err = ic.Signal(ctx, errors.New("no convergence"))
		} else {
			err = ic.Barrier().Wait(ctx)
		}
		mpicx.Throw(messagesAre(err, "no convergence"))
		if remoteLeader == 0 {
			mpicx.Throw(signalled(ctx, local, 5))
		}
		return first(ic.Barrier().Wait(ctx), exchange(ctx, ic.Union(), 1))
	})
}

// An error of a group's communicator, of the bridge or of the world, while CreateIntercomm is under
// way or just before: all have the Intercomm, or all have an error; and then it can be made.
func TestIntercommErrorsMeanwhile(t *testing.T) {
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for on, by := range product([]string{"local", "bridge", "world"}, indices(5)) {
			for after := range 12 {
				errorMeanwhile(t, backend, on, by, after)
			}
		}
	})
}

func errorMeanwhile(t *testing.T, backend mpicx.Option, on string, by, after int) {
	made := make([]bool, 5)
	inBubble(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		local, bridge, remoteLeader := beside(ctx, world, 2)
		c := map[string]*mpicx.Comm{"local": local, "bridge": bridge, "world": world}[on]
		f := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3)
		yield(after)
		if world.Rank() == by {
			mpicx.Throw(propagated(c.SignalError(ctx, 5), 5))
		}
		ic, err := f.Get(ctx)
		for range 2 {
			if err != nil {
				ic, err = f.Get(ctx)
			}
		}
		made[world.Rank()] = err == nil
		if err == nil && on != "world" { // which interrupts it, too
			return exchange(ctx, ic.Union(), 1)
		}
		return nil
	}, backend)
	require.Len(t, slices.Compact(made), 1, "rank %d signals on %s after %d: %v", by, on, after, made)
	require.False(t, t.Failed(), "rank %d signals on %s after %d", by, on, after)
}

// What is wrong is an error at all ranks.
func TestIntercommRefused(t *testing.T) {
	runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		local, bridge, remoteLeader := beside(ctx, world, 2)
		for what, create := range inOrder(map[string]func() *future.Future[*mpicx.Intercomm]{
			"expected another of its 4 ranks": func() *future.Future[*mpicx.Intercomm] {
				return mpicx.CreateIntercomm(local, 0, bridge, bridge.Rank(), 3)
			},
			"no leader": func() *future.Future[*mpicx.Intercomm] {
				return mpicx.CreateIntercomm(local, 1-local.Rank(), bridge, remoteLeader, 3)
			},
			"nil communicator": func() *future.Future[*mpicx.Intercomm] { return mpicx.CreateIntercomm(local, 0, nil, remoteLeader, 3) },
			"expected 0 to 1": func() *future.Future[*mpicx.Intercomm] {
				return mpicx.CreateIntercomm(local, 2, bridge, remoteLeader, 3)
			},
		}) {
			err := create().Wait(ctx)
			require.ErrorContains(t, err, what)
			mpicx.Throw(isA[*mpicx.MPIError](err))
		}
		return world.Barrier().Wait(ctx)
	})
	require.Error(t, mpicx.CreateIntercomm(nil, 0, nil, 0, 0).Wait(t.Context()))
}

// A leader that has left Guard by an error, before its peers know, says so to the other group.
func TestIntercommOfALeaderThatUnwinds(t *testing.T) {
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		refused := make(chan struct{})
		inBubble(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			local, bridge, remoteLeader := beside(ctx, world, 2) // ranks 0 and 1; rank 2
			switch world.Rank() {
			case 0:
				_ = local.Guard(ctx, func(context.Context) error { return errors.New("rank 0 leaves") })
				mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3)
			case 2:
				defer close(refused)
				err := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3).Wait(ctx)
				require.ErrorContains(t, err, "world.split1(0) has an error of its rank 0")
				return isA[*mpicx.MPIError](err)
			}
			<-refused // until then the error of local is not resolved
			return nil
		}, backend)
	})
}
