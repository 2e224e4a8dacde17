package mpicx_test

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
)

// Each rank of a grid has a block of cells, and copies of its neighbours' beside it.
func ExampleNewHalo() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		dims, err := mpicx.DimsCreate(world.Size(), 0, 0)
		if err != nil {
			return err
		}
		grid, err := mpicx.CartCreate(world, dims, []bool{false, true}).Get(ctx)
		if err != nil {
			return err
		}
		halo, err := mpicx.NewHalo[int](grid, []int{2, 2}, 1, true).Get(ctx)
		if err != nil {
			return err
		}
		block := make([]int, halo.Len())
		for i := range 2 {
			for j := range 2 {
				block[halo.Index(i, j)] = 1 + grid.Rank()
			}
		}
		ghosts := halo.Start(block)
		// Here is time for what needs no ghost cells.
		if err := ghosts.Wait(ctx); err != nil {
			return err
		}
		if grid.Rank() == 4 {
			fmt.Printf("rank 4 is at %v of %v\n", grid.Coords(4), dims)
			for i := -1; i <= 2; i++ {
				row := block[halo.Index(i, -1):][:4]
				fmt.Println(row)
			}
		}
		return nil
	}, mpicx.WithRanks(6))
	// Output:
	// rank 4 is at [2 0] of [3 2]
	// [4 3 3 4]
	// [6 5 5 6]
	// [6 5 5 6]
	// [0 0 0 0]
}

// Groups say who is who in another communicator.
func ExampleGroup_TranslateRanks() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		some, err := world.Create(world.Group().Incl(3, 1)).Get(ctx) // as Shrink would make one
		if err != nil || some == nil {
			return err
		}
		if some.Rank() == 0 {
			was := some.Group().TranslateRanks([]int{0, 1}, world.Group())
			is := world.Group().TranslateRanks([]int{0, 1}, some.Group())
			fmt.Println(was, is, is[0] == mpicx.Undefined)
		}
		return nil
	}, mpicx.WithRanks(4))
	// Output: [3 1] [-1 1] true
}
