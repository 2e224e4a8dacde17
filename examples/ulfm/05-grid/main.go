package main

import (
	"context"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
)

const steps = 3

// points are where ranks may die, in each step.
var points = []string{"before the row", "in the row", "between row and column", "in the column", "after the column"}

// atEnds are more points, in step 0.
var atEnds = []string{"before the grid is made", "while the grid is made", "in the agreement"}

func main() {
	lesson.Main(6, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return sums(ctx, world, out, lesson.Faults{{Rank: 4, Step: 1, Point: "between row and column"}})
	})
}

type grid struct{ row, col *mpicx.Comm }

func sums(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	world.SetErrhandler(mpicx.ErrorsReturn) // rows and columns inherit it
	faults.Here(world, 0, "before the grid is made")
	var g grid
	sum := []int{world.Rank()}
	err := g.split(ctx, world, faults)
	for step := 0; step < steps && err == nil; step++ {
		err = g.sum(ctx, world, sum, step, faults)
	}
	if err != nil {
		if !lesson.IsDeath(err) {
			return err
		}
		g.revoke(ctx)
	}

	vote := world.Agree(lesson.Flag(err == nil))
	faults.Here(world, 0, "in the agreement")
	flag, dead, err := lesson.Agreed(ctx, vote)
	switch {
	case err != nil:
		return err
	case flag == 1:
		out.Say(world, "agreed: the sum is %d; dead: %v", sum[0], dead)
	default:
		out.Say(world, "agreed: the grid is broken; dead: %v", dead)
	}
	return nil
}

// split makes the row and the column of this rank.
func (g *grid) split(ctx context.Context, world *mpicx.Comm, faults lesson.Faults) (err error) {
	width := world.Size() / height(world.Size())
	row, col := world.Rank()/width, world.Rank()%width
	if g.row, err = world.Split(row, col).Get(ctx); err != nil {
		return err
	}
	faults.Here(world, 0, "while the grid is made")
	g.col, err = world.Split(col, row).Get(ctx)
	return err
}

// height is the number of rows of the grid of n ranks: the divisor that makes it most like a
// square.
func height(n int) int {
	h := 1
	for d := 1; d*d <= n; d++ {
		if n%d == 0 {
			h = d
		}
	}
	return h
}

// sum sets sum to the sum over all ranks: first along rows, then along columns.
func (g *grid) sum(ctx context.Context, world *mpicx.Comm, sum []int, step int, faults lesson.Faults) error {
	faults.Here(world, step, "before the row")
	rowSum := []int{0}
	f := mpicx.Allreduce(g.row, sum, rowSum, mpicx.Sum)
	faults.Here(world, step, "in the row")
	if err := f.Wait(ctx); err != nil {
		return err
	}
	faults.Here(world, step, "between row and column")
	f = mpicx.Allreduce(g.col, rowSum, sum, mpicx.Sum)
	faults.Here(world, step, "in the column")
	if err := f.Wait(ctx); err != nil {
		return err
	}
	faults.Here(world, step, "after the column")
	return nil
}

// revoke tells all ranks that may wait for this one, in its row and its column.
func (g *grid) revoke(ctx context.Context) {
	for _, c := range []*mpicx.Comm{g.row, g.col} {
		if c != nil { // otherwise it was made at no rank
			_ = c.Revoke(ctx)
		}
	}
}
