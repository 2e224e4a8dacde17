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
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// subset is a group and the ranks of the world that it should have.
type subset struct {
	group *mpicx.Group
	ranks []int
}

func (s subset) check(t *testing.T, world *mpicx.Group, what string) {
	t.Helper()
	require.Equal(t, len(s.ranks), s.group.Size(), what)
	got := s.group.TranslateRanks(indices(len(s.ranks)), world)
	require.True(t, slices.Equal(s.ranks, got), "%s: %v, expected %v", what, got, s.ranks)
	require.Equal(t, slices.Index(s.ranks, 2), s.group.Rank(), what) // the test is rank 2
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Random arithmetic of groups is that of lists without doubles.
func TestGroupArithmetic(t *testing.T) {
	oneProcess(t)
	rnd := seeded(t)
	const n = 7
	mpicxtest.Run(t, n, func(ctx context.Context, comm *mpicx.Comm) error {
		if comm.Rank() != 2 {
			return nil
		}
		world := comm.Group()
		known := []subset{{world, indices(n)}, {nil, nil}}
		without := func(a, b []int) []int {
			return slices.DeleteFunc(slices.Clone(a), func(r int) bool { return slices.Contains(b, r) })
		}
		for range 3000 {
			a, b := known[rnd.IntN(len(known))], known[rnd.IntN(len(known))]
			picked := rnd.Perm(len(a.ranks))[:rnd.IntN(len(a.ranks)+1)]
			ranks := make([]int, len(picked))
			for i, p := range picked {
				ranks[i] = a.ranks[p]
			}
			var s subset
			op := rnd.IntN(5)
			switch op {
			case 0:
				s = subset{a.group.Union(b.group), slices.Concat(a.ranks, without(b.ranks, a.ranks))}
			case 1:
				s = subset{a.group.Intersection(b.group), without(a.ranks, without(a.ranks, b.ranks))}
			case 2:
				s = subset{a.group.Difference(b.group), without(a.ranks, b.ranks)}
			case 3:
				s = subset{a.group.Incl(picked...), ranks}
			case 4:
				s = subset{a.group.Excl(picked...), without(a.ranks, ranks)}
			}
			what := fmt.Sprint(op, a.ranks, b.ranks, picked)
			s.check(t, world, what)
			want := mpicx.Unequal
			if slices.Equal(a.ranks, b.ranks) {
				want = mpicx.Identical
			} else if slices.Equal(slices.Sorted(slices.Values(a.ranks)), slices.Sorted(slices.Values(b.ranks))) {
				want = mpicx.Similar
			}
			require.Equal(t, want, a.group.Compare(b.group), what)
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

func TestGroupRanges(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 8, func(ctx context.Context, comm *mpicx.Comm) error {
		if comm.Rank() != 2 {
			return nil
		}
		world := comm.Group()
		subset{world.RangeIncl(mpicx.Range{0, 6, 3}, mpicx.Range{5, 1, -4}), []int{0, 3, 6, 5, 1}}.checkBut(t, world)
		subset{world.RangeExcl(mpicx.Range{0, 7, 2}), []int{1, 3, 5, 7}}.checkBut(t, world)
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

func (s subset) checkBut(t *testing.T, world *mpicx.Group) {
	t.Helper()
	require.Equal(t, s.ranks, s.group.TranslateRanks(indices(s.group.Size()), world))
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
		c, err := world.Create(g).Get(ctx)
		if err != nil {
			return err
		}
		if got := c.Group().TranslateRanks(indices(c.Size()), all); !slices.Equal(got, want) || c.Rank() != g.Rank() || c.Group().Compare(g) != mpicx.Identical {
			return fmt.Errorf("members %v, expected %v", got, want)
		}
		if err := exchange(ctx, c, 1); err != nil {
			return err
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
		// Who is in none.
		if world.Rank() == 2 {
			g = nil
		} else {
			g = all.Excl(2)
		}
		c, err = world.Create(g).Get(ctx)
		if err != nil || (c == nil) != (world.Rank() == 2) {
			return fmt.Errorf("%v, %v", c, err)
		}
		return exchange(ctx, world, 2)
	})
}

// Groups that are not the same at all their members are an error at all ranks, which
// can go on.
func TestCreateDiffers(t *testing.T) {
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		oneProcess(t)
		for what, of := range map[string]func(rank int, all *mpicx.Group) *mpicx.Group{
			"another order": func(rank int, all *mpicx.Group) *mpicx.Group {
				return all.Incl([][]int{{0, 1, 2}, {0, 2, 1}}[rank/2]...)
			},
			"another, alone":  func(rank int, all *mpicx.Group) *mpicx.Group { return all.Incl([][]int{{0, 1, 2}, {2}}[rank/2]...) },
			"none":            func(rank int, all *mpicx.Group) *mpicx.Group { return []*mpicx.Group{all, nil}[rank/2] },
			"one that has me": func(rank int, all *mpicx.Group) *mpicx.Group { return []*mpicx.Group{all.Incl(0, 1), all}[rank/2] },
			"different for each": func(rank int, all *mpicx.Group) *mpicx.Group {
				return all.Incl([][]int{{0, 1}, {1, 2}, {2, 0}}[rank]...)
			},
		} {
			t.Run(what, func(t *testing.T) {
				err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
					c, err := world.Create(of(world.Rank(), world.Group())).Get(ctx)
					if _, is := errors.AsType[*mpicx.MPIError](err); !is {
						return fmt.Errorf("%v, %w", c, err)
					}
					return exchange(ctx, world, 1)
				}, mpicx.WithRanks(3), backend)
				require.NoError(t, err)
			})
		}
	})
}
