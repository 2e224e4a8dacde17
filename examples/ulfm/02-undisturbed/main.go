// Lesson 2: a dead peer disturbs nobody who does not need it.
//
//	go run -tags ulfm ./examples/ulfm/02-undisturbed
//
// Ranks 0 and 1, 2 and 3, and so on play ping-pong. One of them is killed after
// three rounds. Its partner gets an error in the fourth; all other pairs play to
// the end, on the same communicator, and no error reaches them. What is learnt:
//
//   - An operation that does not involve a dead process goes on undisturbed. Two
//     ranks are involved in a message, all in a collective operation. (ULFM:
//     "an MPI call that does not involve the failed process will complete
//     normally".)
//   - So errors are local knowledge. That the communicator has a dead member is
//     told to nobody by itself: who needs all to know has to tell them, which is
//     what lesson 3 is about.
//
// Try next: end the game by a Barrier. All are involved in that, so all get the error.
package main

import (
	"context"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

const rounds = 10

func main() {
	lesson.Main(6, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return pairs(ctx, world, out, lesson.Faults{{Rank: 2, Step: 3}})
	})
}

// pairs has a fault's Step say how many rounds its rank plays.
func pairs(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	partner := world.Rank() ^ 1 // 0 and 1, 2 and 3, …
	if partner == world.Size() {
		out.Say(world, "has no partner")
		return nil
	}
	for round := range rounds {
		faults.Here(world, round, "")
		ping, pong := []int{round}, []int{-1}
		err := future.WaitAll(ctx,
			mpicx.Send(world, ping, partner, 0),
			mpicx.Recv(world, pong, partner, 0))
		if lesson.IsDeath(err) {
			out.Say(world, "%d rounds with rank %d, then %v", round, partner, err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	out.Say(world, "%d rounds with rank %d", rounds, partner)
	return nil
}
