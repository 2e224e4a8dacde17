package mpicx_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

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
		if !slices.Equal(g.Dims(), s.dims) || !slices.Equal(g.Periods(), s.periods) {
			return fmt.Errorf("%v, %v", g.Dims(), g.Periods())
		}
		for r, c := range s.coords() {
			if got := g.Coords(r); !slices.Equal(got, c) || g.RankOf(c...) != r {
				return fmt.Errorf("rank %d at %v, expected %v, where rank %d is", r, got, c, g.RankOf(c...))
			}
		}
		for dim := range s.dims {
			for by := -5; by <= 5; by++ {
				source, dest := g.Shift(dim, by)
				if source != s.moved(me, dim, -by) || dest != s.moved(me, dim, by) {
					return fmt.Errorf("Shift(%d, %d) is %d, %d", dim, by, source, dest)
				}
			}
			n, cells := 3*s.dims[dim]+me%3, 0
			for x := range s.dims[dim] {
				c := s.coords()[me]
				first, count := blockOf(x, s.dims[dim], n)
				if c[dim] == x {
					if f, k := g.Block(dim, n); f != first || k != count || first != cells {
						return fmt.Errorf("Block(%d, %d) is %d, %d, expected %d, %d", dim, n, f, k, first, count)
					}
				}
				cells += count
			}
			if cells != n {
				return fmt.Errorf("%d of %d cells", cells, n)
			}
		}
		for which := range 1 << len(s.dims) {
			if err := subgrid(ctx, s, g, which); err != nil {
				return fmt.Errorf("Sub(%b): %w", which, err)
			}
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
	var want []int
	var of shape
	for i := range remain {
		if remain[i] = which>>i&1 != 0; remain[i] {
			of.dims, of.periods = append(of.dims, s.dims[i]), append(of.periods, s.periods[i])
		}
	}
	for r, c := range s.coords() {
		differs := false
		for i := range c {
			differs = differs || !remain[i] && c[i] != me[i]
		}
		if !differs {
			want = append(want, r)
		}
	}
	sub, err := g.Sub(remain...).Get(ctx)
	if err != nil {
		return err
	}
	got := sub.Group().TranslateRanks(indices(sub.Size()), g.Group())
	if !slices.Equal(got, want) || !slices.Equal(sub.Dims(), of.dims) || !slices.Equal(sub.Periods(), of.periods) {
		return fmt.Errorf("ranks %v in %v, expected %v in %v", got, sub.Dims(), want, of)
	}
	return sub.Close(ctx)
}

// Ranks that are too many get none, and all have to have the same grid.
func TestCartCreate(t *testing.T) {
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		oneProcess(t)
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			g, err := mpicx.CartCreate(world, []int{2, 2}, nil).Get(ctx)
			if err != nil || (g == nil) != (world.Rank() == 4) {
				return fmt.Errorf("%v, %v", g, err)
			}
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
		}, mpicx.WithRanks(5), backend))
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
		{12, []int{0, 3}, []int{4, 3}}, {12, []int{2, 0, 0}, []int{2, 3, 2}}, {6, []int{3, 2}, []int{3, 2}}, {1, nil, []int{}},
		{7, []int{0, 7, 0}, []int{1, 7, 1}}, {1 << 20, []int{0, 0, 0}, []int{128, 128, 64}}, {720720, []int{0, 0, 0, 0}, []int{30, 28, 33, 26}},
		{math.MaxInt32, []int{0, 0}, []int{math.MaxInt32, 1}}, {2095133040, []int{0, 0, 0}, []int{1292, 1287, 1260}},
	} {
		got, err := mpicx.DimsCreate(test.n, test.dims...)
		require.NoError(t, err)
		if test.n == 720720 {
			slices.Sort(got)
			require.Equal(t, []int{26, 28, 30, 33}, got)
			continue
		}
		require.True(t, slices.Equal(test.want, got), "%v, expected %v", got, test.want)
	}
	for text, dims := range map[string][]int{
		"extents [5 0], expected extents whose product divides the 12 ranks":                                {5, 0},
		"extents [3 2], expected extents whose product is the 12 ranks, or 0 for each that is to be chosen": {3, 2},
		"extent -1 of dimension 1, expected 1 or more, or 0 if it is to be chosen":                          {0, -1},
	} {
		_, err := mpicx.DimsCreate(12, dims...)
		require.ErrorAs(t, err, new(*mpicx.MPIError))
		require.ErrorContains(t, err, text)
	}
	tooMany := int64(math.MaxInt32) + 1 // negative as an int of 32 bits
	for _, n := range []int{0, -1, int(tooMany), math.MinInt} {
		_, err := mpicx.DimsCreate(n, 0)
		require.ErrorContains(t, err, fmt.Sprintf("%d ranks, expected 1 to 2147483647", n))
	}
	if math.MaxInt > math.MaxInt32 {
		_, err := mpicx.DimsCreate(math.MaxInt, 0)
		require.ErrorAs(t, err, new(*mpicx.MPIError))
	}
}

// After Shrink and Replace, programs make new grids of the communicators that these return. By
// groups they find out which rank each member had before.
func TestGridAfterRepair(t *testing.T) {
	const n, victim = 6, 2
	for _, test := range []struct {
		name   string
		spares int
		repair func(ctx context.Context, c *mpicx.Comm) (*mpicx.Comm, error)
		dims   []int
		was    []int // who each was in the world of the beginning
	}{
		{"Shrink", 0, func(ctx context.Context, c *mpicx.Comm) (*mpicx.Comm, error) { return c.Shrink().Get(ctx) }, []int{5, 1}, []int{0, 1, 3, 4, 5}},
		{"Replace", 1, func(ctx context.Context, c *mpicx.Comm) (*mpicx.Comm, error) { return c.Replace().Get(ctx) }, []int{3, 2}, []int{0, 1, mpicx.Undefined, 3, 4, 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := make(chan struct{}, n) // by the others: a death in TryAll would be the error of some
			require.NoError(t, runWithSpares(t, n, test.spares, func(ctx context.Context, c *mpicx.Comm) error {
				if c.Incarnation() == 0 {
					world := c
					old, err := useGrid(ctx, world, []int{3, 2})
					made <- struct{}{}
					if err != nil {
						return err
					}
					if world.Rank() == victim {
						for range n {
							<-made
						}
						mpicxtest.Die(world)
					}
					mpicx.Throw(isA[*mpicx.CommCorruptedError](world.Barrier().Wait(ctx)))
					mpicx.Throw(isA[*mpicx.CommCorruptedError](mpicx.NeighborAllgather(old, []int{1}, make([]int, 4)).Wait(ctx)))
					if c, err = test.repair(ctx, world); err != nil {
						return err
					}
					was := c.Group().TranslateRanks(indices(c.Size()), world.Group())
					if !slices.Equal(was, test.was) || was[c.Rank()] != world.Rank() {
						return fmt.Errorf("rank %d was %v", c.Rank(), was)
					}
					is := world.Group().TranslateRanks([]int{victim, 5}, c.Group())
					if is[0] != mpicx.Undefined || is[1] != c.Size()-1 {
						return fmt.Errorf("ranks 2 and 5 are %v", is)
					}
					if lost := world.Group().Difference(c.Group()); lost.TranslateRanks([]int{0}, world.Group())[0] != victim || lost.Size() != 1 {
						return fmt.Errorf("%v is lost", lost)
					}
				}
				dims, err := mpicx.DimsCreate(c.Size(), 0, 0)
				if err != nil || !slices.Equal(dims, test.dims) {
					return fmt.Errorf("%v, %w", dims, err)
				}
				_, err = useGrid(ctx, c, dims)
				return err
			}))
		})
	}
}

// useGrid makes a grid that all have, and uses it.
func useGrid(ctx context.Context, c *mpicx.Comm, dims []int) (g *mpicx.Cart, err error) {
	err = c.TryAll(ctx, func(ctx context.Context) error {
		if g, err = mpicx.CartCreate(c, dims, []bool{true, true}).Get(ctx); err != nil {
			return err
		}
		return checkHalo(ctx, shape{dims, []bool{true, true}}, g, 1, true)
	})
	return g, err
}
