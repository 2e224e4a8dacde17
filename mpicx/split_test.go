package mpicx_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Who is in which communicator, and in which order, of a Split of a Split.
func TestSplitOrders(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 7, func(ctx context.Context, world *mpicx.Comm) error {
		keys := []int{5, -1, 5, math.MinInt, math.MaxInt, -1, 0}
		colors := []int{math.MaxInt, 3, math.MaxInt, 3, 3, mpicx.Undefined, 3}
		want := map[int][]int{3: {3, 1, 6, 4}, math.MaxInt: {0, 2}} // by color: ranks of the world
		me := world.Rank()
		c, err := world.Split(colors[me], keys[me]).Get(ctx)
		if err != nil || (c == nil) != (colors[me] == mpicx.Undefined) {
			return fmt.Errorf("%v, %v", c, err)
		}
		if c == nil {
			return nil
		}
		members := want[colors[me]]
		reversed, err := c.Split(0, -c.Rank()).Get(ctx)
		if err != nil {
			return err
		}
		got, back := make([]int, len(members)), make([]int, len(members))
		mpicx.Allgather(c, []int{me}, got).MustWait(ctx)
		mpicx.Allgather(reversed, []int{me}, back).MustWait(ctx)
		for i, r := range members {
			if got[i] != r || back[len(members)-1-i] != r {
				return fmt.Errorf("members %v, reversed %v, expected %v", got, back, members)
			}
		}
		return nil
	})
}

// onMachines has ranks of the world on so many machines, in turn.
type onMachines struct {
	transport.Comm
	machines int
	world    []int // ranks there; nil: the same
}

func (c *onMachines) Machine(rank int) int {
	if c.world != nil {
		rank = c.world[rank]
	}
	return rank % c.machines
}

func (c *onMachines) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	world := c.world
	if members != nil {
		world = nil
		for _, r := range members {
			if c.world != nil {
				r = c.world[r]
			}
			world = append(world, r)
		}
	}
	return &onMachines{made, c.machines, world}, err
}

// Whose machine a rank shares, on the world and on what is derived from it.
func TestSplitShared(t *testing.T) {
	for _, backend := range []string{"blackchannel", "ulfm"} {
		for _, machines := range []int{1, 3, 7} {
			for _, n := range fitting(1, 4, 7) {
				wrap := hook.Transport[mpicx.Option](func(t transport.Comm) transport.Comm { return &onMachines{Comm: t, machines: machines} })
				err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
					me := world.Rank()
					// Ranks of the world that share c with me, by falling rank of c, where most have their number.
					check := func(c *mpicx.Comm, in func(rank int) bool) error {
						shared, err := c.SplitShared(-c.Rank()).Get(ctx)
						if err != nil {
							return err
						}
						var want []int
						for r := n - 1; r >= 0; r-- {
							if in(r) && r%machines == me%machines {
								want = append(want, r)
							}
						}
						got, err := mpicx.AllgatherValue(shared, me).Get(ctx)
						if err != nil || !slices.Equal(got, want) {
							return fmt.Errorf("%v has ranks %v, expected %v: %w", shared, got, want, err)
						}
						return shared.Close(ctx)
					}
					if err := check(world, func(int) bool { return true }); err != nil {
						return err
					}
					half := world.Dup().MustGet(ctx).Split(me%2, me).MustGet(ctx)
					return check(half, func(rank int) bool { return rank%2 == me%2 })
				}, mpicx.WithRanks(n), hook.Backend[mpicx.Option](backend), wrap)
				if err != nil {
					t.Fatalf("%s, %d ranks on %d machines: %v", backend, n, machines, err)
				}
			}
		}
	}
}

// Splits of n ranks in one process cost each rank space for itself, not for all n.
func TestSplitSpace(t *testing.T) {
	oneProcess(t)
	if processes != nil {
		t.Skip("needs goroutine ranks")
	}
	const splits = 4
	perSplit := func(n int) float64 {
		var before, after runtime.MemStats
		width := int(math.Sqrt(float64(n)))
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			read := func(m *runtime.MemStats) {
				world.Barrier().MustWait(ctx)
				if world.Rank() == 0 {
					runtime.ReadMemStats(m)
				}
				world.Barrier().MustWait(ctx)
			}
			read(&before)
			for i := range splits {
				color := world.Rank() / width
				if i%2 > 0 {
					color = world.Rank() % width
				}
				if _, err := world.Split(color, 0).Get(ctx); err != nil {
					return err
				}
			}
			read(&after)
			return nil
		}, mpicx.WithRanks(n))
		if err != nil {
			t.Fatal(err)
		}
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(n*splits)
	}
	few, many := perSplit(500), perSplit(2000)
	t.Logf("%.0f bytes a rank and split of 500 ranks, %.0f of 2000", few, many)
	if most := few + 4000; many > most { // two ints for each rank would be 32,000
		t.Errorf("%.0f bytes a rank and split of 2000 ranks, expected at most %.0f, as with 500", many, most)
	}
}
