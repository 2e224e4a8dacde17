package mpicx_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
)

// checkpoints are the two newest states that a rank has saved. Ranks are never more
// than one apart: so each still has the newest that all have.
type checkpoints struct {
	states [2][]float64 // by step modulo 2
	newest int          // step
}

func (c *checkpoints) save(step int, x []float64) {
	c.states[step%2] = append(c.states[step%2][:0], x...)
	c.newest = step
}

func (c *checkpoints) restore(step int, x []float64) {
	copy(x, c.states[step%2])
	c.newest = step
}

// Ranks that save a state and continue do not know who else has saved it: a rank still in the Barrier
// after it may get the next error in the Barrier's place, and ranks would go back to different
// states. So save inside of TryAll, keep two versions, and go back to the newest that all have.
func ExampleComm_TryAll_checkpoint() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		s := solver{x: []float64{float64(world.Rank())}, next: 1}
		s.saved.save(0, s.x)
		for s.next <= 6 {
			err := world.TryAll(ctx, func(ctx context.Context) error { return s.step(ctx, world) })
			p, failed := errors.AsType[*mpicx.PropagatedError](err) // at every rank
			if err != nil && !failed {
				return err
			}
			if failed && world.Rank() == 0 {
				fmt.Println(p.Failures[0].Message)
			}
			s.goBack = failed
		}
		if world.Rank() == 0 {
			fmt.Println(s.x[0])
		}
		return nil
	}, mpicx.WithRanks(4))
	fmt.Println(err)
	// Output:
	// a node of the mesh is inside out
	// back to step 3
	// 23436
	// <nil>
}

type solver struct {
	x      []float64
	next   int // step
	saved  checkpoints
	goBack bool
	failed bool // so far
}

func (s *solver) step(ctx context.Context, world *mpicx.Comm) error {
	if s.goBack {
		common := []int{0}
		if err := mpicx.Allreduce(world, []int{s.saved.newest}, common, mpicx.Min).Wait(ctx); err != nil {
			return err
		}
		s.saved.restore(common[0], s.x)
		s.next = common[0] + 1
		if world.Rank() == 0 {
			fmt.Println("back to step", common[0])
		}
		return nil // the error may have come after the last step
	}
	if world.Rank() == 2 && s.next == 4 && !s.failed {
		s.failed = true
		return errors.New("a node of the mesh is inside out")
	}
	sum := []float64{0}
	if err := mpicx.Allreduce(world, s.x, sum, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	s.x[0] += sum[0]
	s.saved.save(s.next, s.x)
	s.next++
	return nil
}
