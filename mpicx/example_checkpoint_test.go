package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
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

// marching is the program of the example with failures wherever fail says, and pauses.
// It returns to which steps the rank went back, and on from there.
func marching(ctx context.Context, world *mpicx.Comm, steps int, x []float64, pause func(), fail func(step int) error) (back []int, _ error) {
	sum := make([]float64, 1)
	var saved checkpoints
	saved.save(0, x)
	goBack := false
	for step := 1; step <= steps; step++ {
		wentBack := -1
		err := world.TryAll(ctx, func(ctx context.Context) error {
			pause()
			if goBack {
				common := []int{0}
				if err := mpicx.Allreduce(world, []int{saved.newest}, common, mpicx.Min).Wait(ctx); err != nil {
					return err
				}
				if common[0] < saved.newest-1 {
					return fmt.Errorf("rank %d has steps %d and %d, expected %d as well", world.Rank(), saved.newest, saved.newest-1, common[0])
				}
				saved.restore(common[0], x)
				step, wentBack = common[0]+1, common[0]
				if step > steps {
					return nil
				}
			}
			if err := fail(step); err != nil {
				return err
			}
			if err := mpicx.Allreduce(world, x, sum, mpicx.Sum).Wait(ctx); err != nil {
				return err
			}
			x[0] += sum[0]
			pause()
			saved.save(step, x)
			if err := fail(step); err != nil {
				return err
			}
			return nil
		})
		if _, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
			goBack = true
			step--
			continue
		}
		if err != nil {
			return back, err
		}
		if goBack {
			back = append(back, wentBack)
		}
		goBack = false
		pause() // skew: some go on before others have heard that they may
	}
	return back, nil
}

// No two ranks go back to different states, whoever fails when.
func TestCheckpointsWithoutSkew(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	rnd := seeded(t)
	const steps = 8
	back := 0
	for run := range 300 {
		n := 2 + rnd.IntN(5)
		seed := rnd.Uint64()
		sums := make([]float64, n)
		paths := make([][]int, n)
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) (err error) {
			own := rand.New(rand.NewPCG(seed, uint64(world.Rank())))
			failures := 3
			x := []float64{float64(world.Rank())}
			paths[world.Rank()], err = marching(ctx, world, steps, x, func() {
				time.Sleep(time.Duration(own.IntN(4)) * time.Microsecond)
			}, func(step int) error {
				if failures > 0 && own.IntN(12) == 0 {
					failures--
					return fmt.Errorf("rank %d failed in step %d", world.Rank(), step)
				}
				return nil
			})
			sums[world.Rank()] = x[0]
			return err
		})
		require.False(t, t.Failed(), "run %d: %d ranks, seed %d", run, n, seed)
		x := make([]float64, n)
		for r := range x {
			x[r] = float64(r)
		}
		for range steps {
			sum := 0.0
			for _, v := range x {
				sum += v
			}
			for r := range x {
				x[r] += sum
			}
		}
		require.Equal(t, x, sums, "run %d: %d ranks, seed %d, back to %v", run, n, seed, paths)
		for _, path := range paths {
			require.Equal(t, paths[0], path, "run %d: %d ranks, seed %d", run, n, seed)
		}
		back += len(paths[0])
	}
	require.Greater(t, back, 300, "hardly a run went back")
	t.Logf("went back %d times", back)
}
