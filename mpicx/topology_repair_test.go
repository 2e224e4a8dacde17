package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// After Shrink and Replace programs make their grids anew, of what these return, and find by
// groups who was who before.
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
			err := runWithSpares(t, n, test.spares, func(ctx context.Context, c *mpicx.Comm) error {
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
					if err := world.Barrier().Wait(ctx); !corrupted(err) {
						return fmt.Errorf("Barrier: %v", err)
					}
					if err := mpicx.NeighborAllgather(old, []int{1}, make([]int, 4)).Wait(ctx); !corrupted(err) {
						return fmt.Errorf("on the old grid: %v", err)
					}
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
			})
			require.NoError(t, err)
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
