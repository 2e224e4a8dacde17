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

// pairs plays; a fault's Step is the number of rounds that its rank plays.
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
