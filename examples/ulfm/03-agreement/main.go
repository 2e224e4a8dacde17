// Lesson 3: an error that only some see, and agreement about it.
//
//	go run -tags ulfm ./examples/ulfm/03-agreement
//
// Rank 0 broadcasts a number, down a tree: to ranks 1 and 2, and rank 2 passes it on
// to rank 3. But rank 2 is killed in the middle of it. Ranks 0 and 1 have done
// their part, and see a success; rank 3 will never have the number, and sees an
// error. If each went on by what it saw, they would part for ever. So they agree,
// and all take the same branch. What is learnt:
//
//   - A collective operation in which somebody dies may succeed at some ranks and
//     fail at others. (ULFM: "in MPI_Bcast, the root process is likely to succeed
//     before a failed process disrupts the operation".)
//   - Agree, MPIX_Comm_agree, is the AND of what the living say, and the same at
//     all of them, whoever dies before or during it. A Barrier or an Allreduce in
//     its place would be one more operation that some see fail, and some not.
//   - Agree reports the dead by a *ProcFailedError, at all ranks alike. Its Flag is
//     what was agreed: they have a common answer, and know that not all gave theirs.
//   - The broadcast needs no Revoke: all ranks are involved, so it ends everywhere
//     by itself. Had we made the tree of Sends and Recvs, a rank below one that
//     gave up would wait for somebody who lives: then Revoke comes first (lesson 5).
//
// Try next: let rank 2 die at another of the points, and rank 0 at each.
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

// late is a point that shows the split every time: the victim waits until rank 1
// has the number. (Rank 1 has it from rank 0.) The other points are a race.
const late = "late"

var points = []string{late, "before the broadcast", "in the broadcast", "after the broadcast", "in the agreement"}

func broadcast(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, fault lesson.Fault) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	if fault == (lesson.Fault{Rank: world.Rank(), Point: late}) {
		_ = mpicx.Recv(world, []int{}, 1, 0).Wait(ctx)
		fault.Here(world, 0, late)
	}
	number := []int{0}
	if world.Rank() == 0 {
		number[0] = 42
	}

	fault.Here(world, 0, "before the broadcast")
	bcast := mpicx.Bcast(world, number, 0)
	fault.Here(world, 0, "in the broadcast")
	err := bcast.Wait(ctx)
	switch {
	case err == nil:
		out.Say(world, "has the number")
	case lesson.IsDeath(err):
		out.Say(world, "has no number: %v", err)
	default:
		return err
	}
	if fault.Point == late && world.Rank() == 1 {
		_ = mpicx.Send(world, []int{}, fault.Rank, 0).Wait(ctx)
	}
	fault.Here(world, 0, "after the broadcast")

	vote := world.Agree(lesson.Flag(err == nil)) // bits: 1 if I have it
	fault.Here(world, 0, "in the agreement")
	flag, err := vote.Get(ctx)
	if dead, ok := errors.AsType[*mpicx.ProcFailedError](err); ok {
		flag = dead.Flag
	} else if err != nil {
		return err
	}
	if flag == 1 {
		out.Say(world, "agreed: all who live have the number, go on with %d", number[0])
	} else {
		out.Say(world, "agreed: not all who live have the number, go on without it")
	}
	return nil
}
