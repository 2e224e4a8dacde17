package mpicx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A cell says where it is in the whole, and that it is one.
type cell struct {
	At   [3]int16
	Here bool
}

// After Start each ghost cell is a copy of the cell that is there in the whole, unless it is beyond a
// border, or at a corner that was not asked for: those are left alone.
func TestHalo(t *testing.T) {
	onGrids(t, 12, func(ctx context.Context, s shape, g *mpicx.Cart) error {
		for _, width := range []int{1, 2} {
			for _, corners := range []bool{false, true} {
				if err := checkHalo(ctx, s, g, width, corners); err != nil {
					return fmt.Errorf("width %d, corners %v: %w", width, corners, err)
				}
			}
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
	h, err := mpicx.NewHalo[cell](g, cells, width, corners).Get(ctx)
	if err != nil {
		return err
	}
	block := make([]cell, h.Len())
	at := make([]int, len(cells))
	visit := func(fn func(ghosts int, have *cell) error) error {
		for i := range at {
			at[i] = -width
		}
		for {
			ghosts := 0
			for i, x := range at {
				if x < 0 || x >= cells[i] {
					ghosts++
				}
			}
			if err := fn(ghosts, &block[h.Index(at...)]); err != nil {
				return err
			}
			i := len(at) - 1
			for ; i >= 0; i-- {
				if at[i]++; at[i] < cells[i]+width {
					break
				}
				at[i] = -width
			}
			if i < 0 {
				return nil
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
		_ = visit(func(ghosts int, have *cell) error {
			*have = cell{}
			if ghosts == 0 {
				*have = whole()
			}
			return nil
		})
		if err := h.Start(block).Wait(ctx); err != nil {
			return err
		}
		err := visit(func(ghosts int, have *cell) error {
			want := whole()
			if !want.Here || ghosts > 1 && !corners {
				want = cell{}
			}
			if *have != want {
				return fmt.Errorf("%v at %v of %v: expected %v", *have, at, cells, want)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// F4, P3: an error ends a Start, after which the Halo serves again.
func TestHaloInterrupted(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		g := mpicx.CartCreate(world, []int{2, 2}, []bool{true, true}).MustGet(ctx)
		var h *mpicx.Halo[float64]
		err := g.TryAll(ctx, func(ctx context.Context) (err error) { // so that no error of g finds a rank in NewHalo
			h, err = mpicx.NewHalo[float64](g, []int{3, 3}, 1, true).Get(ctx)
			return err
		})
		if err != nil {
			return err
		}
		block := make([]float64, h.Len())
		for round := range 5 {
			err := g.TryAll(ctx, func(ctx context.Context) error {
				if g.Rank() == round%4 {
					return g.SignalError(ctx, 7)
				}
				return h.Start(block).Wait(ctx)
			})
			if err := propagated(err, 7); err != nil {
				return err
			}
			for i := range block {
				block[i] = float64(10*round + g.Rank())
			}
			err = g.TryAll(ctx, func(ctx context.Context) error { return h.Start(block).Wait(ctx) })
			if err != nil {
				return err
			}
			for dim := range 2 {
				before, _ := g.Shift(dim, 1)
				if got := block[h.Index([][]int{{-1, 0}, {0, -1}}[dim]...)]; got != float64(10*round+before) {
					return fmt.Errorf("round %d: %v from rank %d", round, got, before)
				}
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
		if _, is := err.(*mpicx.PropagatedError); !is {
			return fmt.Errorf("got %v, expected an error of the function", err)
		}
		return h.Start(block).Wait(ctx)
	})
}
