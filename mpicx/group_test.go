package mpicx_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// subset is a group and the ranks of the world that it should have.
type subset struct {
	group *mpicx.Group
	ranks []int
}

// check is called at rank 2.
func (s subset) check(t *testing.T, world *mpicx.Group, what string) {
	t.Helper()
	require.Equal(t, append([]int{}, s.ranks...), s.group.TranslateRanks(indices(s.group.Size()), world), what)
	require.Equal(t, slices.Index(s.ranks, 2), s.group.Rank(), what)
}

func indices(n int) []int { return numbers(n, 0) }

// Random arithmetic of groups is that of lists without doubles.
func TestGroupArithmetic(t *testing.T) {
	oneProcess(t)
	rnd := seeded(t)
	mpicxtest.Run(t, 7, func(ctx context.Context, comm *mpicx.Comm) error {
		if comm.Rank() != 2 {
			return nil
		}
		world := comm.Group()
		known := []subset{{world, indices(7)}, {nil, nil}}
		for range 3000 {
			a, b := known[rnd.IntN(len(known))], known[rnd.IntN(len(known))]
			picked := rnd.Perm(len(a.ranks))[:rnd.IntN(len(a.ranks)+1)]
			ranks := make([]int, len(picked))
			for i, p := range picked {
				ranks[i] = a.ranks[p]
			}
			what := fmt.Sprint(a.ranks, b.ranks, picked)
			s := []subset{
				{a.group.Union(b.group), slices.Concat(a.ranks, without(b.ranks, a.ranks))},
				{a.group.Intersection(b.group), without(a.ranks, without(a.ranks, b.ranks))},
				{a.group.Difference(b.group), without(a.ranks, b.ranks)},
				{a.group.Incl(picked...), ranks},
				{a.group.Excl(picked...), without(a.ranks, ranks)},
			}[rnd.IntN(5)]
			s.check(t, world, what)
			require.Equal(t, likeness(a.ranks, b.ranks), a.group.Compare(b.group), what)
			for i, r := range a.group.TranslateRanks(indices(len(a.ranks)), b.group) {
				require.Equal(t, slices.Index(b.ranks, a.ranks[i]), r) // -1 is Undefined
			}
			if len(known) < 40 {
				known = append(known, s)
			} else {
				known[2+rnd.IntN(38)] = s
			}
		}
		return nil
	})
}

func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(r int) bool { return slices.Contains(b, r) })
}

func likeness(a, b []int) mpicx.Comparison {
	switch {
	case slices.Equal(a, b):
		return mpicx.Identical
	case slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))):
		return mpicx.Similar
	}
	return mpicx.Unequal
}

func TestGroupRanges(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 8, func(ctx context.Context, comm *mpicx.Comm) error {
		if comm.Rank() != 2 {
			return nil
		}
		world := comm.Group()
		subset{world.RangeIncl(mpicx.Range{0, 6, 3}, mpicx.Range{5, 1, -4}), []int{0, 3, 6, 5, 1}}.check(t, world, "RangeIncl")
		subset{world.RangeExcl(mpicx.Range{0, 7, 2}), []int{1, 3, 5, 7}}.check(t, world, "RangeExcl")
		subset{world.RangeIncl(mpicx.Range{3, 2, 1}), nil}.check(t, world, "none")
		require.Equal(t, []int{mpicx.ProcNull, 4}, world.TranslateRanks([]int{mpicx.ProcNull, 4}, world))
		for what, call := range map[string]func(){
			"Incl: rank 8, expected one of the group's 8":           func() { world.Incl(8) },
			"Excl: rank -1, expected one of the group's 8":          func() { world.Excl(-1) },
			"Incl: rank 3 twice":                                    func() { world.Incl(3, 1, 3) },
			"RangeIncl: rank 9, expected one of the group's 8":      func() { world.RangeIncl(mpicx.Range{7, 9, 2}) },
			"RangeExcl: stride 0 from 1 to 2":                       func() { world.RangeExcl(mpicx.Range{1, 2, 0}) },
			"TranslateRanks: rank 0, expected one of the group's 0": func() { (*mpicx.Group)(nil).TranslateRanks([]int{0}, world) },
		} {
			requireThrown(t, what, call)
		}
		return nil
	})
}

// requireThrown says that call throws an *MPIError.
func requireThrown(t *testing.T, text string, call func()) {
	t.Helper()
	thrown, is := recovered(call).(future.Thrown)
	require.True(t, is, text)
	require.ErrorAs(t, thrown, new(*mpicx.MPIError))
	require.ErrorContains(t, thrown, text)
}

// Create makes communicators of groups, in their order, for those who are in one.
func TestCreate(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		all := world.Group()
		g, want := all.Incl(3, 0), []int{3, 0}
		if world.Rank()%3 > 0 {
			g, want = all.Incl(2, 1), []int{2, 1}
		}
		c := world.Create(g).MustGet(ctx)
		require.Equal(t, want, c.Group().TranslateRanks(indices(c.Size()), all))
		require.Equal(t, g.Rank(), c.Rank())
		require.Equal(t, mpicx.Identical, c.Group().Compare(g))
		mpicx.Throw(exchange(ctx, c, 1))
		mpicx.Throw(c.Close(ctx))
		g = all.Excl(2)
		if world.Rank() == 2 {
			g = nil // it is in no group
		}
		require.Equal(t, world.Rank() == 2, world.Create(g).MustGet(ctx) == nil)
		return exchange(ctx, world, 2)
	})
}

// Groups that are not the same at all their members are an error at all ranks, which can continue.
func TestCreateDiffers(t *testing.T) {
	oneProcess(t)
	for what, ranks := range map[string][3][]int{
		"another order":      {{0, 1, 2}, {0, 1, 2}, {0, 2, 1}},
		"another, alone":     {{0, 1, 2}, {0, 1, 2}, {2}},
		"none":               {{0, 1, 2}, {0, 1, 2}, nil},
		"one that has me":    {{0, 1}, {0, 1}, {0, 1, 2}},
		"different for each": {{0, 1}, {1, 2}, {2, 0}},
	} {
		runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			var g *mpicx.Group
			if mine := ranks[world.Rank()]; mine != nil {
				g = world.Group().Incl(mine...)
			}
			return first(explain(isA[*mpicx.MPIError](world.Create(g).Wait(ctx)), "%s", what), exchange(ctx, world, 1))
		})
	}
}

// The members of each communicator of a Split of a Split, and their order.
func TestSplitOrders(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 7, func(ctx context.Context, world *mpicx.Comm) error {
		keys := []int{5, -1, 5, math.MinInt, math.MaxInt, -1, 0}
		colors := []int{math.MaxInt, 3, math.MaxInt, 3, 3, mpicx.Undefined, 3}
		want := map[int][]int{3: {3, 1, 6, 4}, math.MaxInt: {0, 2}} // by color: ranks of the world
		me := world.Rank()
		c := world.Split(colors[me], keys[me]).MustGet(ctx)
		require.Equal(t, colors[me] == mpicx.Undefined, c == nil)
		if c == nil {
			return nil
		}
		members := want[colors[me]]
		require.Equal(t, members, mpicx.AllgatherValue(c, me).MustGet(ctx))
		back := mpicx.AllgatherValue(c.Split(0, -c.Rank()).MustGet(ctx), me).MustGet(ctx)
		slices.Reverse(back)
		require.Equal(t, members, back)
		return nil
	})
}

// onMachines has ranks of the world on a number of machines, in turn.
type onMachines struct {
	transport.Comm
	machines int
	world    []int // ranks there; nil: the same
}

func (c *onMachines) Machine(rank int) int { return c.worldRank(rank) % c.machines }

// worldRank returns a rank's number in the world.
func (c *onMachines) worldRank(rank int) int {
	if c.world != nil {
		return c.world[rank]
	}
	return rank
}

func (c *onMachines) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	world := c.world
	if members != nil {
		world = nil
		for _, r := range members {
			world = append(world, c.worldRank(r))
		}
	}
	return &onMachines{made, c.machines, world}, err
}

// The ranks on the same machine, on the world and on communicators derived from it.
func TestSplitShared(t *testing.T) {
	for n, machines := range product(fitting(1, 4, 7), []int{1, 3, 7}) {
		wrap := hook.Transport[mpicx.Option](func(t transport.Comm) transport.Comm { return &onMachines{Comm: t, machines: machines} })
		for _, backend := range []string{"blackchannel", "ulfm"} {
			require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				me := world.Rank()
				half := world.Dup().MustGet(ctx).Split(me%2, me).MustGet(ctx)
				return first(sharedIs(ctx, world, me, n, machines, 1), sharedIs(ctx, half, me, n, machines, 2))
			}, mpicx.WithRanks(n), hook.Backend[mpicx.Option](backend), wrap), "%s, %d ranks on %d machines", backend, n, machines)
		}
	}
}

// sharedIs says that SplitShared gives the ranks of the world that share c with me and are on my
// machine, by falling rank: c has each every-th of the n.
func sharedIs(ctx context.Context, c *mpicx.Comm, me, n, machines, every int) error {
	shared := c.SplitShared(-c.Rank()).MustGet(ctx)
	var want []int
	for r := n - 1; r >= 0; r-- {
		if r%every == me%every && r%machines == me%machines {
			want = append(want, r)
		}
	}
	return first(same("who shares", mpicx.AllgatherValue(shared, me).MustGet(ctx), want), shared.Close(ctx))
}

// Splits of n ranks in one process cost each rank space for itself, not for all n.
func TestSplitSpace(t *testing.T) {
	oneProcess(t)
	const splits = 4
	perSplit := func(n int) float64 {
		var before, after runtime.MemStats
		width := int(math.Sqrt(float64(n)))
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			read := func(m *runtime.MemStats) {
				world.Barrier().MustWait(ctx)
				if world.Rank() == 0 {
					runtime.ReadMemStats(m)
				}
				world.Barrier().MustWait(ctx)
			}
			read(&before)
			for range splits / 2 {
				world.Split(world.Rank()/width, 0).MustWait(ctx)
				world.Split(world.Rank()%width, 0).MustWait(ctx)
			}
			read(&after)
			return nil
		}, mpicx.WithRanks(n)))
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(n*splits)
	}
	few, many := perSplit(500), perSplit(2000)
	require.LessOrEqual(t, many, few+4000, "bytes a rank and split of 2000 ranks, and of 500") // two ints for each rank would be 32,000
}
