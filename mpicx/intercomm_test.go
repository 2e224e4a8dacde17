package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

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
				if me != local.Rank() || n != local.Size() || n+m != world.Size() {
					return fmt.Errorf("rank %d of %d, %d others", me, n, m)
				}
				group := 1 // what this group's values begin with; the other's: 3 - group
				if world.Rank() >= sizes[0] {
					group = 2
				}
				value := func(group, rank int) int { return 100*group + rank }

				for r := range m {
					mpicx.InterSend(ic, []int{value(group, me)}, r, 5).MustWait(ctx)
				}
				for r := range m {
					got := []int{0}
					s, err := mpicx.InterRecv(ic, got, r, 5).Get(ctx)
					if err != nil || s.Source != r || got[0] != value(3-group, r) {
						return fmt.Errorf("received %d, %+v, %v", got[0], s, err)
					}
				}
				ic.Barrier().MustWait(ctx)
				for root := range world.Size() { // of each group, as Union has them
					bcast, gathered := []int{-1}, make([]int, m)
					if root == ic.Union().Rank() {
						bcast[0] = root
					}
					mpicx.InterBcast(ic, bcast, root).MustWait(ctx)
					own, _ := ic.Split([]int{root})
					switch {
					case own == nil && bcast[0] != root, own != nil && root != ic.Union().Rank() && bcast[0] != -1:
						return fmt.Errorf("Bcast from %d: %d", root, bcast[0])
					}
					mpicx.InterGather(ic, []int{value(group, me)}, gathered, root).MustWait(ctx)
					for r, v := range gathered {
						if want := value(3-group, r); v != want && root == ic.Union().Rank() {
							return fmt.Errorf("Gather to %d: %v", root, gathered)
						}
					}
				}
				sum, want := []int{0}, 0
				for r := range m {
					want += value(3-group, r)
				}
				if mpicx.InterAllreduce(ic, []int{value(group, me)}, sum, mpicx.Sum).MustWait(ctx); sum[0] != want {
					return fmt.Errorf("Allreduce: %d, expected %d", sum[0], want)
				}
				send, recv := make([]int, group*m), make([]int, (3-group)*m) // as long as the group's number
				for i := range send {
					send[i] = 1000*value(group, me) + i
				}
				mpicx.InterAlltoall(ic, send, recv).MustWait(ctx)
				for i, v := range recv {
					if part := 3 - group; v != 1000*value(3-group, i/part)+me*part+i%part {
						return fmt.Errorf("Alltoall: %v", recv)
					}
				}
				merged := ic.Merge(group == 1).MustGet(ctx)
				if at := ic.Rank() + map[int]int{1: m, 2: 0}[group]; merged.Rank() != at {
					return fmt.Errorf("rank %d of the merged, expected %d", merged.Rank(), at)
				}
				return first(exchange(ctx, merged, 0), ic.Close(ctx))
			})
		})
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
		if err == nil || !strings.Contains(err.Error(), "no convergence") {
			return fmt.Errorf("got %w", err)
		}
		if remoteLeader == 0 {
			mpicx.Throw(signalled(ctx, local, 5))
		}
		return first(ic.Barrier().Wait(ctx), exchange(ctx, ic.Union(), 1))
	})
}

// An error of a group's communicator, of the bridge or of the world, while CreateIntercomm is under
// way or just before: all have the Intercomm, or all have an error; and then it can be made.
func TestIntercommErrorsMeanwhile(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for on, by := range product([]string{"local", "bridge", "world"}, indices(5)) {
			for after := range 12 {
				made := make([]bool, 5)
				inBubble(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
					local, bridge, remoteLeader := beside(ctx, world, 2)
					c := map[string]*mpicx.Comm{"local": local, "bridge": bridge, "world": world}[on]
					f := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3)
					for range after {
						runtime.Gosched()
					}
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
				if t.Failed() || slices.Contains(made, true) && slices.Contains(made, false) {
					t.Fatalf("rank %d signals on %s after %d: %v", by, on, after, made)
				}
			}
		}
	})
}

// What is wrong is an error at all ranks.
func TestIntercommRefused(t *testing.T) {
	for what, create := range inOrder(map[string]func(local, bridge, world *mpicx.Comm, remoteLeader int) func(ctx context.Context) error{
		"expected another of its 4 ranks": func(local, bridge, _ *mpicx.Comm, _ int) func(ctx context.Context) error {
			return mpicx.CreateIntercomm(local, 0, bridge, bridge.Rank(), 3).Wait
		},
		"no leader": func(local, bridge, _ *mpicx.Comm, remoteLeader int) func(ctx context.Context) error {
			return mpicx.CreateIntercomm(local, 1-local.Rank(), bridge, remoteLeader, 3).Wait
		},
		"nil communicator": func(local, _, _ *mpicx.Comm, remoteLeader int) func(ctx context.Context) error {
			return mpicx.CreateIntercomm(local, 0, nil, remoteLeader, 3).Wait
		},
		"expected 0 to 1": func(local, bridge, _ *mpicx.Comm, remoteLeader int) func(ctx context.Context) error {
			return mpicx.CreateIntercomm(local, 2, bridge, remoteLeader, 3).Wait
		},
	}) {
		t.Run(what, func(t *testing.T) {
			runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
				local, bridge, remoteLeader := beside(ctx, world, 2)
				err := create(local, bridge, world, remoteLeader)(ctx)
				if !is[*mpicx.MPIError](err) || !strings.Contains(err.Error(), what) {
					return fmt.Errorf("got %w", err)
				}
				return nil
			})
		})
	}
	if _, err := mpicx.CreateIntercomm(nil, 0, nil, 0, 0).Get(t.Context()); err == nil {
		t.Error("a nil communicator")
	}
}

// A leader that has left Guard by an error, before its peers know, says so to the other group.
func TestIntercommOfALeaderThatUnwinds(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		refused := make(chan struct{})
		inBubble(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			local, bridge, remoteLeader := beside(ctx, world, 2) // ranks 0 and 1; rank 2
			if world.Rank() == 1 {
				<-refused // until then the error of local is not resolved
				return nil
			}
			if world.Rank() == 0 {
				_ = local.Guard(ctx, func(context.Context) error { return errors.New("rank 0 leaves") })
			}
			f := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 3)
			if world.Rank() == 0 {
				<-refused
				return nil
			}
			defer close(refused)
			err := f.Wait(ctx)
			want := "world.split1(0) has an error of its rank 0"
			if !is[*mpicx.MPIError](err) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}, backend)
	})
}
