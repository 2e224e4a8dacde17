package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// On a grid a rank gets in each direction what the neighbour there has sent the other way,
// though that may be itself, or the neighbour on both sides.
func TestNeighborsOfGrids(t *testing.T) {
	onGrids(t, 12, func(ctx context.Context, s shape, g *mpicx.Cart) error {
		me, k := g.Rank(), 2*len(s.dims)
		// element and part say from whom, and into which direction. Where nobody is, a buffer stays as it is.
		element := func(rank, direction, i int) int {
			if rank == mpicx.ProcNull {
				return 0
			}
			return 1 + 1000*rank + 10*direction + i
		}
		part := func(rank, direction int) []int {
			length := 2
			if rank != mpicx.ProcNull {
				length = (rank + direction) % 4
			}
			all := make([]int, length)
			for i := range all {
				all[i] = element(rank, direction, i)
			}
			return all
		}
		var parts, wantParts, firsts, wantFirsts, wantAll []int
		send, recv := make([]int, k), make([]int, k)
		for d := range k {
			before := s.moved(me, d/2, 2*(d%2)-1)
			mine, its := part(me, d), part(before, d^1)
			send[d], recv[d] = len(mine), len(its)
			parts, wantParts = append(parts, mine...), append(wantParts, its...)
			firsts, wantFirsts = append(firsts, element(me, d, 0)), append(wantFirsts, element(before, d^1, 0))
			wantAll = append(wantAll, max(before, 0), -max(before, 0))
		}
		gotParts, gotFirsts, gotAll := make([]int, len(wantParts)), make([]int, k), make([]int, 2*k)
		mpicx.NeighborAlltoallv(g, parts, send, gotParts, recv).MustWait(ctx)
		mpicx.NeighborAlltoall(g, firsts, gotFirsts).MustWait(ctx)
		mpicx.NeighborAllgather(g, []int{me, -me}, gotAll).MustWait(ctx)
		return errors.Join(same("Alltoallv", gotParts, wantParts), same("Alltoall", gotFirsts, wantFirsts), same("Allgather", gotAll, wantAll))
	})
}

// Random graphs, with edges to itself, several between the same ranks, and ranks without any.
func TestGraph(t *testing.T) {
	oneProcess(t)
	rnd := seeded(t)
	for range 40 {
		n := 1 + rnd.IntN(6)
		edges := make([][2]int, rnd.IntN(4*n))
		for i := range edges {
			edges[i] = [2]int{rnd.IntN(n), rnd.IntN(n)}
		}
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me := world.Rank()
			// Edge i has its number, i%3 times. Then each rank sends its number as often as that says.
			var sources, destinations, send, counts, want, recvCounts, wantAll []int
			for i, e := range edges {
				if e[0] == me {
					destinations = append(destinations, e[1])
					send, counts = append(send, slices.Repeat([]int{i}, i%3)...), append(counts, i%3)
				}
				if e[1] == me {
					sources = append(sources, e[0])
					want, recvCounts = append(want, slices.Repeat([]int{i}, i%3)...), append(recvCounts, i%3)
					wantAll = append(wantAll, slices.Repeat([]int{e[0]}, e[0])...)
				}
			}
			g := mpicx.GraphCreate(world, sources, destinations).MustGet(ctx)
			got, all := make([]int, len(want)), make([]int, len(wantAll))
			mpicx.NeighborAlltoallv(g, send, counts, got, recvCounts).MustWait(ctx)
			mpicx.NeighborAllgatherv(g, slices.Repeat([]int{me}, me), all, sources).MustWait(ctx)
			return errors.Join(same("Sources", g.Sources(), sources), same("Destinations", g.Destinations(), destinations),
				same("Alltoallv", got, want), same("Allgatherv", all, wantAll), g.Close(ctx))
		})
	}
}

// An edge that only one of its ranks has declared is an error at all ranks, which can continue.
func TestGraphDiffers(t *testing.T) {
	oneProcess(t)
	// A rank, and how often it names its neighbours in the ring as a source and as a destination.
	for text, wrong := range map[string][3]int{
		"rank 1 has rank 2 1 times as a destination, and rank 2 has rank 1 0 times as a source": {2, 0, 1},
		"rank 1 has rank 2 2 times as a destination, and rank 2 has rank 1 1 times as a source": {1, 1, 2},
		"rank 0 has rank 1 0 times as a destination, and rank 1 has rank 0 1 times as a source": {0, 1, 0},
	} {
		for n := 3; n <= 6; n++ {
			mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				r, times := world.Rank(), wrong
				if r != wrong[0] {
					times = [3]int{r, 1, 1}
				}
				sources, destinations := slices.Repeat([]int{(r + n - 1) % n}, times[1]), slices.Repeat([]int{(r + 1) % n}, times[2])
				mpicx.Throw(isMPIError(mpicx.GraphCreate(world, sources, destinations).Wait(ctx), "GraphCreate", mpicx.ClassRank, text))
				return exchange(ctx, world, 0)
			})
		}
	}
}

// F1: bad arguments, as every operation has them.
func TestNeighborhoodArguments(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		g := mpicx.CartCreate(world, []int{2, 2}, nil).MustGet(ctx)
		one, four := []int{1}, make([]int, 4)
		var noCart *mpicx.Cart
		var noGraph *mpicx.Graph
		var noComm *mpicx.Comm
		var noHalo *mpicx.Halo[int]
		halo := mpicx.NewHalo[int](g, []int{2, 2}, 1, false).MustGet(ctx)
		mpicx.Throw(refused(ctx,
			refusal{mpicx.NeighborAllgather(g, one, one), "NeighborAllgather", mpicx.ClassBuffer, "recv has 1 elements, expected 4"},
			refusal{mpicx.NeighborAllgatherv(g, one, four, four[:3]), "NeighborAllgatherv", mpicx.ClassCount, "3 recv counts, expected one for each of the 4 neighbours"},
			refusal{mpicx.NeighborAlltoall(g, make([]int, 6), four), "NeighborAlltoall", mpicx.ClassCount, "send has 6 elements, expected a multiple of the 4 destinations"},
			refusal{mpicx.NeighborAlltoall(g, four, make([]int, 5)), "NeighborAlltoall", mpicx.ClassCount, "recv has 5 elements, expected a multiple of the 4 sources"},
			refusal{mpicx.NeighborAlltoallv(g, one, []int{1, -1, 1, 0}, nil, four), "NeighborAlltoallv", mpicx.ClassCount, "send count -1 of neighbour 1"},
			refusal{mpicx.NeighborAlltoallv(g, nil, four, one, four), "NeighborAlltoallv", mpicx.ClassBuffer, "recv buffer has 1 elements, expected 0"},
			refusal{mpicx.NeighborAllgather[int](noCart, nil, nil), "NeighborAllgather", mpicx.ClassComm, "nil communicator"},
			refusal{mpicx.NeighborAlltoall[int](noGraph, nil, nil), "NeighborAlltoall", mpicx.ClassComm, "nil communicator"},
			refusal{mpicx.NeighborAlltoall[int](nil, nil, nil), "NeighborAlltoall", mpicx.ClassComm, "nil communicator"},
			refusal{noComm.Create(nil), "Create", mpicx.ClassComm, "nil communicator"},
			refusal{mpicx.CartCreate(nil, four, nil), "CartCreate", mpicx.ClassComm, "nil communicator"},
			refusal{mpicx.GraphCreate(nil, four, nil), "GraphCreate", mpicx.ClassComm, "nil communicator"},
			refusal{mpicx.NewHalo[int](nil, four, 1, false), "NewHalo", mpicx.ClassComm, "nil communicator"},
			refusal{noCart.Sub(), "CartSub", mpicx.ClassComm, "nil communicator"},
			refusal{noHalo.Start(nil), "Halo", mpicx.ClassComm, "nil communicator"},
			refusal{g.Create(world.Group().Incl(0, 1).Union(nil)), "Create", 0, ""},
			refusal{mpicx.CartCreate(world, []int{2, 0}, nil), "CartCreate", mpicx.ClassOther, "extent 0 of dimension 1"},
			refusal{mpicx.CartCreate(world, []int{2, 3}, nil), "CartCreate", mpicx.ClassOther, "extents [2 3], expected at most the 4 ranks of world"},
			refusal{mpicx.CartCreate(world, []int{2, 2}, []bool{true}), "CartCreate", mpicx.ClassOther, "1 periods, expected one for each of the 2 dimensions"},
			refusal{mpicx.GraphCreate(world, nil, []int{4}), "GraphCreate", mpicx.ClassRank, "neighbour 4 of world, expected 0 to 3"},
			refusal{g.Sub(true), "CartSub", mpicx.ClassOther, "1 values, expected one for each of the 2 dimensions"},
			refusal{mpicx.NewHalo[int](g, []int{2, 2}, 0, false), "NewHalo", mpicx.ClassOther, "width 0"},
			refusal{mpicx.NewHalo[int](g, []int{3, 2}, 3, false), "NewHalo", mpicx.ClassOther, "2 cells in dimension 1, expected the 3 layers of ghost cells or more"},
			refusal{mpicx.NewHalo[int](g, []int{1 << 30, 1 << 30}, 1, false), "NewHalo", mpicx.ClassOther, "blocks of [1073741824 1073741824] cells, expected ones that fit into memory"},
			refusal{mpicx.NewHalo[int](g, []int{3}, 1, false), "NewHalo", mpicx.ClassOther, "blocks of [3] cells, expected extents in each of the 2 dimensions"},
			refusal{mpicx.NewHalo[string](g, []int{2, 2}, 1, false), "NewHalo", mpicx.ClassType, "have pointers"},
			refusal{halo.Start(four), "Halo", mpicx.ClassBuffer, "block has 4 elements, expected 16"},
			refusal{mpicx.NewHalo[int](g, []int{2, 2 + g.Rank()%2*2}, 1, false), "", 0, ""},
			refusal{mpicx.NewHalo[int](g, []int{2 + g.Rank()%2, 2}, 1, false), "NewHalo", mpicx.ClassOther, "expected [" + fmt.Sprint(2+g.Rank()%2) + " 2] cells but for dimension 1"},
			refusal{mpicx.NewHalo[int](g, []int{2, 2}, 1, g.Rank() < 2), "NewHalo", mpicx.ClassOther, "corners"},
		))
		return exchange(ctx, g.Comm, 0)
	})
}

// Coordinates and dimensions that there are not.
func TestCartThrows(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		g := mpicx.CartCreate(world, []int{2, 2}, []bool{true, false}).MustGet(ctx)
		h := mpicx.NewHalo[int](g, []int{2, 2}, 1, false).MustGet(ctx)
		for text, call := range map[string]func(){
			"Coords: rank 4":                     func() { g.Coords(4) },
			"RankOf: 1 coordinates":              func() { g.RankOf(1) },
			"Shift: dimension 2":                 func() { g.Shift(2, 1) },
			"Block: 3 cells along dimension -1":  func() { g.Block(-1, 3) },
			"Index: coordinate 3 in dimension 1": func() { h.Index(0, 3) },
			"Index: 3 coordinates":               func() { h.Index(0, 0, 0) },
		} {
			requireThrown(t, text, call)
		}
		return nil
	})
}

// A cell says where it is in the whole, and that it is one.
type cell struct {
	At   [3]int16
	Here bool
}

// After Start each ghost cell is a copy of the cell that is there in the whole, unless it is beyond
// a border, or at a corner that was not asked for: those are left alone.
func TestHalo(t *testing.T) {
	onGrids(t, 12, func(ctx context.Context, s shape, g *mpicx.Cart) error {
		for width, corners := range product([]int{1, 2}, []bool{false, true}) {
			mpicx.Throw(explain(checkHalo(ctx, s, g, width, corners), "width %d, corners %v", width, corners))
		}
		return nil
	})
}

func checkHalo(ctx context.Context, s shape, g *mpicx.Cart, width int, corners bool) error {
	var total, first, cells []int
	for i, d := range s.dims { // as uneven as can be
		total = append(total, d*width+(i+1)*(d-1))
		from, count := g.Block(i, total[i])
		first, cells = append(first, from), append(cells, count)
	}
	h := mpicx.NewHalo[cell](g, cells, width, corners).MustGet(ctx)
	block := make([]cell, h.Len())
	at := make([]int, len(cells))
	// places goes through the block. A cell is a ghost in ghosts of its dimensions.
	places := func(yield func(ghosts int, have *cell) bool) {
		for k := range block {
			ghosts := 0
			for i, count := range cells {
				at[i], k = k%(count+2*width)-width, k/(count+2*width)
				if at[i] < 0 || at[i] >= count {
					ghosts++
				}
			}
			if !yield(ghosts, &block[h.Index(at...)]) {
				return
			}
		}
	}
	// whole returns the cell at a place of the whole.
	whole := func() (c cell) {
		c.Here = true
		for i, x := range at {
			x += first[i]
			if s.periods[i] {
				x = (x + width*total[i]) % total[i]
			}
			c.Here = c.Here && x >= 0 && x < total[i]
			c.At[i] = int16(x)
		}
		return c
	}
	for range 2 { // it serves again
		for ghosts, have := range places {
			if *have = (cell{}); ghosts == 0 {
				*have = whole()
			}
		}
		mpicx.Throw(h.Start(block).Wait(ctx))
		for ghosts, have := range places {
			want := whole()
			if !want.Here || ghosts > 1 && !corners {
				want = cell{}
			}
			if *have != want {
				return fmt.Errorf("%v at %v of %v: expected %v", *have, at, cells, want)
			}
		}
	}
	return nil
}

// F4, P3: an error ends a Start, after which the Halo serves again.
func TestHaloInterrupted(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		g := mpicx.CartCreate(world, []int{2, 2}, []bool{true, true}).MustGet(ctx)
		var h *mpicx.Halo[float64]
		mpicx.Throw(g.TryAll(ctx, func(ctx context.Context) (err error) { // so that no error of g finds a rank in NewHalo
			h, err = mpicx.NewHalo[float64](g, []int{3, 3}, 1, true).Get(ctx)
			return err
		}))
		block := make([]float64, h.Len())
		for round := range 5 {
			err := g.TryAll(ctx, func(ctx context.Context) error {
				if g.Rank() == round%4 {
					return g.SignalError(ctx, 7)
				}
				return h.Start(block).Wait(ctx)
			})
			mpicx.Throw(propagated(err, 7))
			for i := range block {
				block[i] = float64(10*round + g.Rank())
			}
			mpicx.Throw(g.TryAll(ctx, func(ctx context.Context) error { return h.Start(block).Wait(ctx) }))
			for dim := range 2 {
				before, _ := g.Shift(dim, 1)
				require.Equal(t, float64(10*round+before), block[h.Index([][]int{{-1, 0}, {0, -1}}[dim]...)])
			}
		}
		return nil
	})
}

// A Start that a reduction's function must not make does not keep the Halo busy.
func TestHaloInReduction(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		g := mpicx.CartCreate(world, []int{2}, []bool{true}).MustGet(ctx)
		h := mpicx.NewHalo[int](g, []int{3}, 1, false).MustGet(ctx)
		block := make([]int, h.Len())
		err := g.TryAll(ctx, func(ctx context.Context) error {
			return mpicx.AllreduceFunc(g.Comm, []int{1}, []int{0}, func(a, b int) int {
				h.Start(block)
				return a + b
			}).Wait(ctx)
		})
		mpicx.Throw(isA[*mpicx.PropagatedError](err))
		return h.Start(block).Wait(ctx)
	})
}
