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

// Ranks that save a state and go on do not know who else has saved it: a rank still in
// the Barrier after it may get the next error in the Barrier's place, and ranks would go
// back to different states. So save inside of TryAll, keep two versions, and go back to
// the newest that all have.
func ExampleComm_TryAll_checkpoint() {
	const steps = 6
	failed := false // so far, at rank 2
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		x, sum := []float64{float64(world.Rank())}, []float64{0}
		var saved checkpoints
		saved.save(0, x)
		goBack := false
		for step := 1; step <= steps; step++ {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				if goBack {
					common := []int{0}
					if err := mpicx.Allreduce(world, []int{saved.newest}, common, mpicx.Min).Wait(ctx); err != nil {
						return err
					}
					saved.restore(common[0], x)
					step = common[0] + 1
					if world.Rank() == 0 {
						fmt.Println("back to step", common[0])
					}
					if step > steps {
						return nil // the error came after the last one
					}
				}
				if world.Rank() == 2 && step == 4 && !failed {
					failed = true
					return errors.New("a node of the mesh is inside out")
				}
				if err := mpicx.Allreduce(world, x, sum, mpicx.Sum).Wait(ctx); err != nil {
					return err
				}
				x[0] += sum[0]
				saved.save(step, x)
				return nil
			})
			if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok { // at every rank
				if world.Rank() == 0 {
					fmt.Println(p.Failures[0].Message)
				}
				goBack = true
				step-- // again
				continue
			}
			if err != nil {
				return err
			}
			goBack = false
		}
		if world.Rank() == 0 {
			fmt.Println(x[0])
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
