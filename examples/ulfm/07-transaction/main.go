package main

import (
	"context"
	"slices"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/mpicx"
)

const versions = 3

// points are where ranks may die, in each transaction. The points of the repair are passed only if
// there is one.
var points = []string{
	"before the transaction", "while money is under way", "while it arrives",
	"before the agreement", "in the agreement", "after the agreement", "in the repair",
}

func main() {
	lesson.Main(4, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return transactions(ctx, world, out, lesson.Faults{{Rank: 2, Step: 1, Point: "while it arrives"}})
	})
}

func transactions(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	comm := world
	accounts := []int{100, 200, 300, 400, 500, 600, 700}
	checkpoint, version := slices.Clone(accounts), 0
	for version < versions {
		here := func(point string) { faults.Here(world, version, point) }
		err := transfer(ctx, comm, accounts, here)
		if err != nil {
			if !lesson.IsDeath(err) {
				return err
			}
			_ = comm.Revoke(ctx) // no rank may wait for me
		}

		here("before the agreement")
		vote := comm.Agree(lesson.Flag(err == nil))
		here("in the agreement")
		flag, dead, err := lesson.Agreed(ctx, vote)
		if err != nil {
			return err
		}
		here("after the agreement")
		if flag == 1 {
			copy(checkpoint, accounts)
			version++
			out.Say(world, "commit: version %d is %v", version, accounts)
		} else {
			copy(accounts, checkpoint)
			out.Say(world, "roll back to version %d", version)
		}
		if flag == 1 && len(dead) == 0 {
			continue
		}

		repair := comm.Shrink()
		here("in the repair")
		if comm, err = repair.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

// transfer moves a tenth of each account to the next. If it fails, the contents of accounts differ
// between ranks.
func transfer(ctx context.Context, comm *mpicx.Comm, accounts []int, here func(string)) error {
	here("before the transaction")
	n := len(accounts)
	out, in := make([]int, n), make([]int, n)
	for a := comm.Rank(); a < n; a += comm.Size() { // my share
		out[a] = -accounts[a] / 10
		in[(a+1)%n] = accounts[a] / 10
	}
	for _, phase := range []struct {
		mine  []int
		point string
	}{{out, "while money is under way"}, {in, "while it arrives"}} {
		all := make([]int, n)
		f := mpicx.Allreduce(comm, phase.mine, all, mpicx.Sum)
		here(phase.point)
		if err := f.Wait(ctx); err != nil {
			return err
		}
		for a := range accounts {
			accounts[a] += all[a]
		}
	}
	return nil
}
