package main

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
)

const (
	members = 8
	items   = 100
)

// points are where ranks may die, in each member. The points of the repair are passed only if there
// is one.
var points = []string{"before the sum", "in the sum", "at the end", "in the agreement", "before the repair", "in the repair"}

func main() {
	lesson.Main(5, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		left, err := byHand(ctx, world, out, lesson.Faults{{Rank: 1, Step: 5, Point: "in the sum"}})
		if err != nil {
			return err
		}
		left.SetErrhandler(mpicx.ErrorsPropagate)
		if left, err = left.Dup().Get(ctx); err != nil { // a communicator on which no rank is still in byHand
			return err
		}
		return byGuard(ctx, world, left, out, lesson.Faults{{Rank: 3, Step: 5, Point: "in the sum"}})
	})
}

func byHand(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) (left *mpicx.Comm, err error) {
	world.SetErrhandler(mpicx.ErrorsReturn)
	comm, series := world, []int{1}
	for {
		err := compute(ctx, world, comm, &series, faults)
		if err != nil {
			if !lesson.IsDeath(err) {
				return nil, err
			}
			_ = comm.Revoke(ctx)
		}
		vote := comm.Agree(lesson.Flag(err == nil))
		faults.Here(world, len(series), "in the agreement")
		finished, _, err := lesson.Agreed(ctx, vote)
		if err != nil {
			return nil, err
		}
		if finished == 1 {
			out.Say(world, "by hand, as rank %d of %d: %v", comm.Rank(), comm.Size(), series)
			return comm, nil
		}
		if comm, err = shrink(ctx, world, comm, len(series), faults); err != nil {
			return nil, err
		}
	}
}

func byGuard(ctx context.Context, world, comm *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	series := []int{1}
	for {
		err := comm.Guard(ctx, func(ctx context.Context) error {
			if err := compute(ctx, world, comm, &series, faults); err != nil {
				return err
			}
			vote := comm.Agree(1) // no rank leaves before all have finished
			faults.Here(world, len(series), "in the agreement")
			return vote.Wait(ctx)
		})
		if err == nil {
			out.Say(world, "by Guard, as rank %d of %d: %v", comm.Rank(), comm.Size(), series)
			return nil
		}
		if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok && !lesson.IsDeath(err) {
			return err
		}
		if comm, err = shrink(ctx, world, comm, len(series), faults); err != nil {
			return err
		}
	}
}

func shrink(ctx context.Context, world, comm *mpicx.Comm, step int, faults lesson.Faults) (*mpicx.Comm, error) {
	faults.Here(world, step, "before the repair")
	repair := comm.Shrink()
	faults.Here(world, step, "in the repair")
	return repair.Get(ctx)
}

// compute appends the missing members to series.
func compute(ctx context.Context, world, comm *mpicx.Comm, series *[]int, faults lesson.Faults) error {
	have, all := []int{len(*series)}, []int{0}
	if err := mpicx.Allreduce(comm, have, all, mpicx.Min).Wait(ctx); err != nil {
		return err
	}
	*series = (*series)[:all[0]]
	for len(*series) < members {
		n := len(*series)
		faults.Here(world, n, "before the sum")
		share, sum := []int{0}, []int{0}
		for i := comm.Rank(); i < items; i += comm.Size() { // divided anew after a repair
			share[0] += ((*series)[n-1] + i) * i % 101
		}
		f := mpicx.Allreduce(comm, share, sum, mpicx.Sum)
		faults.Here(world, n, "in the sum")
		if err := f.Wait(ctx); err != nil {
			return err
		}
		*series = append(*series, sum[0])
	}
	faults.Here(world, members, "at the end")
	return nil
}
