package main

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	lesson.Main(4, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return broadcast(ctx, world, out, lesson.Fault{Rank: 2, Point: late})
	})
}

// late is a point that shows the split every time: the victim waits until rank 1 has the table.
// (Rank 1 gets it from rank 0.) At the other points the ranks race.
const late = "late"

var points = []string{late, "before the broadcast", "in the broadcast", "after the broadcast", "in the agreement"}

func broadcast(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, fault lesson.Fault) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	if fault == (lesson.Fault{Rank: world.Rank(), Point: late}) {
		_ = mpicx.Recv(world, []int{}, 1, 0).Wait(ctx)
		fault.Here(world, 0, late)
	}
	table := make([]int, 200)
	if world.Rank() == 0 {
		table[199] = 42
	}

	fault.Here(world, 0, "before the broadcast")
	bcast := mpicx.BcastValue(world, table, 0) // messages along a tree
	fault.Here(world, 0, "in the broadcast")
	table, err := bcast.Get(ctx)
	switch {
	case err == nil:
		out.Say(world, "has the table")
	case lesson.IsDeath(err):
		out.Say(world, "has no table: %v", err)
	default:
		return err
	}
	if fault.Point == late && world.Rank() == 1 {
		_ = mpicx.Send(world, []int{}, fault.Rank, 0).Wait(ctx)
	}
	fault.Here(world, 0, "after the broadcast")

	vote := world.Agree(lesson.Flag(err == nil)) // bits: 1 if I have the table
	fault.Here(world, 0, "in the agreement")
	flag, err := vote.Get(ctx)
	if dead, ok := errors.AsType[*mpicx.ProcFailedError](err); ok {
		flag = dead.Flag
	} else if err != nil {
		return err
	}
	if flag == 1 {
		out.Say(world, "agreed: all living ranks have the table, continue with %d", table[199])
	} else {
		out.Say(world, "agreed: not all living ranks have the table, continue without it")
	}
	return nil
}
