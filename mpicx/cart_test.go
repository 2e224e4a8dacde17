package mpicx_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A shape is a grid, as a test computes with it.
type shape struct {
	dims    []int
	periods []bool
}

// shapes calls visit for all grids of at most n ranks, of one to three dimensions, periodic each
// way.
func shapes(n int, visit func(shape)) {
	var grow func(dims []int, left int)
	grow = func(dims []int, left int) {
		for p := range 1 << len(dims) {
			s := shape{slices.Clone(dims), make([]bool, len(dims))}
			for i := range dims {
				s.periods[i] = p>>i&1 != 0
			}
			if len(dims) > 0 {
				visit(s)
			}
		}
		for d := 1; d <= left && len(dims) < 3; d++ {
			grow(append(dims, d), left/d)
		}
	}
	grow(nil, n)
}

func (s shape) size() int {
	n := 1
	for _, d := range s.dims {
		n *= d
	}
	return n
}

// coords are those of all ranks: the odometer's.
func (s shape) coords() (all [][]int) {
	at := make([]int, len(s.dims))
	for range s.size() {
		all = append(all, slices.Clone(at))
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < s.dims[i] {
				break
			}
			at[i] = 0
		}
	}
	return all
}

// at finds the rank at coordinates, one step at a time; ProcNull: none.
func (s shape) at(coords []int) int {
	coords = slices.Clone(coords)
	for i := range coords {
		for s.periods[i] && coords[i] < 0 {
			coords[i] += s.dims[i]
		}
		for s.periods[i] && coords[i] >= s.dims[i] {
			coords[i] -= s.dims[i]
		}
	}
	if r := slices.IndexFunc(s.coords(), func(c []int) bool { return slices.Equal(c, coords) }); r >= 0 {
		return r
	}
	return mpicx.ProcNull
}

func (s shape) moved(rank, dim, by int) int {
	c := s.coords()[rank]
	c[dim] += by
	return s.at(c)
}

// onGrids runs fn on all small grids, at ranks that are in them.
func onGrids(t *testing.T, most int, fn func(ctx context.Context, s shape, g *mpicx.Cart) error) {
	byProcesses := make(map[int][]shape)
	shapes(most, func(s shape) { byProcesses[s.size()] = append(byProcesses[s.size()], s) })
	for n := 1; n <= most; n++ { // under a launcher all processes run them in step
		all := byProcesses[n]
		if len(fitting(n)) == 0 {
			continue
		}
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			for _, s := range all {
				g := mpicx.CartCreate(world, s.dims, s.periods).MustGet(ctx)
				mpicx.Throw(explain(fn(ctx, s, g), "%v, rank %d", s, world.Rank()))
				mpicx.Throw(g.Close(ctx))
			}
			return nil
		})
	}
}

// The coordinates of each rank of a grid, and its neighbours.
func TestCart(t *testing.T) {
	onGrids(t, 12, func(ctx context.Context, s shape, g *mpicx.Cart) error {
		me := g.Rank()
		require.Equal(t, s, shape{g.Dims(), g.Periods()})
		for r, c := range s.coords() {
			require.Equal(t, c, g.Coords(r))
			require.Equal(t, r, g.RankOf(c...))
		}
		for dim, extent := range s.dims {
			for by := -5; by <= 5; by++ {
				source, dest := g.Shift(dim, by)
				require.Equal(t, [2]int{s.moved(me, dim, -by), s.moved(me, dim, by)}, [2]int{source, dest}, "Shift(%d, %d)", dim, by)
			}
			n := 3*extent + me%3
			first, count := g.Block(dim, n)
			wantFirst, wantCount := blockOf(s.coords()[me][dim], extent, n)
			require.Equal(t, [2]int{wantFirst, wantCount}, [2]int{first, count}, "Block(%d, %d)", dim, n)
		}
		for which := range 1 << len(s.dims) {
			mpicx.Throw(explain(subgrid(ctx, s, g, which), "Sub(%b)", which))
		}
		return nil
	})
}

// blockOf deals n cells out to parts, and returns those of one.
func blockOf(x, parts, n int) (first, count int) {
	counts := make([]int, parts)
	for i := range n {
		counts[i%parts]++
	}
	for _, c := range counts[:x] {
		first += c
	}
	return first, counts[x]
}

func subgrid(ctx context.Context, s shape, g *mpicx.Cart, which int) error {
	remain, me := make([]bool, len(s.dims)), s.coords()[g.Rank()]
	var of shape
	for i := range remain {
		if remain[i] = which>>i&1 != 0; remain[i] {
			of.dims, of.periods = append(of.dims, s.dims[i]), append(of.periods, s.periods[i])
		}
	}
	var want []int
	for r, c := range s.coords() {
		if !slices.ContainsFunc(indices(len(c)), func(i int) bool { return !remain[i] && c[i] != me[i] }) {
			want = append(want, r)
		}
	}
	sub := g.Sub(remain...).MustGet(ctx)
	got := sub.Group().TranslateRanks(indices(sub.Size()), g.Group())
	return first(same("ranks", got, want), same("extents", sub.Dims(), of.dims), same("periods", sub.Periods(), of.periods), sub.Close(ctx))
}

// Ranks that are too many get none, and all have to have the same grid.
func TestCartCreate(t *testing.T) {
	oneProcess(t)
	runBoth(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
		g := mpicx.CartCreate(world, []int{2, 2}, nil).MustGet(ctx)
		require.Equal(t, world.Rank() == 4, g == nil)
		if g != nil {
			mpicx.Throw(exchange(ctx, g.Comm, 1))
		}
		for _, other := range []shape{{[]int{4, 1}, nil}, {[]int{1, 3}, nil}, {[]int{2, 2}, []bool{true, false}}, {[]int{4}, nil}} {
			if world.Rank()%2 == 0 {
				other = shape{[]int{2, 2}, []bool{false, false}}
			}
			_, err := mpicx.CartCreate(world, other.dims, other.periods).Get(ctx)
			mpicx.Throw(isA[*mpicx.MPIError](err))
		}
		return exchange(ctx, world, 2)
	})
}

// factorizations calls visit for all k falling factors of n.
func factorizations(n, k, most int, found []int, visit func([]int)) {
	if k == 0 {
		if n == 1 {
			visit(found)
		}
		return
	}
	for d := min(n, most); d >= 1; d-- {
		if n%d == 0 {
			factorizations(n/d, k-1, d, append(found, d), visit)
		}
	}
}

// What DimsCreate finds is the best of all that there is.
func TestDimsCreate(t *testing.T) {
	oneProcess(t)
	for n := 1; n <= 130; n++ {
		for k := 1; k <= 4; k++ {
			var best []int
			factorizations(n, k, n, nil, func(f []int) {
				spread := func(f []int) int { return f[0] - f[k-1] }
				if best == nil || spread(f) < spread(best) || spread(f) == spread(best) && slices.Compare(f, best) < 0 {
					best = slices.Clone(f)
				}
			})
			got, err := mpicx.DimsCreate(n, make([]int, k)...)
			require.NoError(t, err)
			require.Equal(t, best, got)
		}
	}
	for _, test := range []struct {
		n          int
		dims, want []int
	}{
		{12, []int{0, 3}, []int{4, 3}}, {12, []int{2, 0, 0}, []int{2, 3, 2}}, {6, []int{3, 2}, []int{3, 2}}, {1, nil, nil},
		{7, []int{0, 7, 0}, []int{1, 7, 1}}, {1 << 20, []int{0, 0, 0}, []int{128, 128, 64}}, {720720, []int{0, 0, 0, 0}, []int{26, 28, 30, 33}},
		{math.MaxInt32, []int{0, 0}, []int{math.MaxInt32, 1}}, {2095133040, []int{0, 0, 0}, []int{1292, 1287, 1260}},
	} {
		got, err := mpicx.DimsCreate(test.n, test.dims...)
		require.NoError(t, err)
		if test.n == 720720 {
			slices.Sort(got)
		}
		require.Equal(t, test.want, got)
	}
	for text, dims := range map[string][]int{
		"extents [5 0], expected extents whose product divides the 12 ranks":                                {5, 0},
		"extents [3 2], expected extents whose product is the 12 ranks, or 0 for each that is to be chosen": {3, 2},
		"extent -1 of dimension 1, expected 1 or more, or 0 if it is to be chosen":                          {0, -1},
	} {
		_, err := mpicx.DimsCreate(12, dims...)
		require.NoError(t, isMPIError(err, "DimsCreate", mpicx.ClassOther, text))
	}
	tooMany := int64(math.MaxInt32) + 1 // negative as an int of 32 bits
	for _, n := range []int{0, -1, int(tooMany), math.MinInt} {
		_, err := mpicx.DimsCreate(n, 0)
		require.NoError(t, isMPIError(err, "DimsCreate", mpicx.ClassOther, fmt.Sprintf("%d ranks, expected 1 to 2147483647", n)))
	}
	if math.MaxInt > math.MaxInt32 {
		_, err := mpicx.DimsCreate(math.MaxInt, 0)
		require.ErrorAs(t, err, new(*mpicx.MPIError))
	}
}

// After Shrink and Replace, groups say which rank each member had before, and which rank is lost.
func TestGroupsAfterRepair(t *testing.T) {
	const n, victim = 6, 2
	for spares, test := range []struct {
		repair func(*mpicx.Comm) *future.Future[*mpicx.Comm]
		was    []int // the rank of each in the world of the beginning
	}{
		{(*mpicx.Comm).Shrink, []int{0, 1, 3, 4, 5}},
		{(*mpicx.Comm).Replace, []int{0, 1, mpicx.Undefined, 3, 4, 5}},
	} {
		require.NoError(t, runWithSpares(t, n, spares, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Incarnation() > 0 {
				return nil
			}
			if world.Rank() == victim {
				mpicxtest.Die(world)
			}
			mpicx.Throw(isA[*mpicx.CommCorruptedError](world.Barrier().Wait(ctx)))
			c := test.repair(world).MustGet(ctx)
			require.Equal(t, test.was, c.Group().TranslateRanks(indices(c.Size()), world.Group()))
			require.Equal(t, world.Rank(), test.was[c.Rank()])
			require.Equal(t, []int{mpicx.Undefined, c.Size() - 1}, world.Group().TranslateRanks([]int{victim, 5}, c.Group()))
			lost := world.Group().Difference(c.Group())
			require.Equal(t, []int{victim}, lost.TranslateRanks(indices(lost.Size()), world.Group()))
			return nil
		}))
	}
}
