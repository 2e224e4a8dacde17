package fit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/optimize"

	"github.com/mpicx/go-mpicx/docs/guide/09-frameworks/fit"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// parabolas returns rank r's term, (x-r)². The sum of three is least at 1.
func parabolas(r int) fit.Loss {
	return func(_ context.Context, x, grad []float64) (float64, error) {
		d := x[0] - float64(r)
		grad[0] += 2 * d
		return d * d, nil
	}
}

func minimize(ctx context.Context, world *mpicx.Comm, loss fit.Loss) (fit.Point, error) {
	return fit.Minimize(ctx, world, loss, fit.Point{X: []float64{9}, F: math.Inf(1)}, &optimize.BFGS{})
}

// A loss that fails at one rank is an error at all, and the communicator works.
func TestFails(t *testing.T) {
	errNone := errors.New("no value")
	for rank := range 3 {
		mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			evaluations := 0
			_, err := minimize(ctx, world, func(ctx context.Context, x, grad []float64) (float64, error) {
				if evaluations++; evaluations == 2 && world.Rank() == rank {
					return 0, errNone
				}
				return parabolas(world.Rank())(ctx, x, grad)
			})
			var e *fit.Error
			require.ErrorAs(t, err, &e)
			if known := e.Best.F; world.Rank() == rank || !math.IsInf(known, 1) { // another may know one less
				require.InDelta(t, 194, known, 1e-9)
			}
			var p *mpicx.PropagatedError
			require.ErrorAs(t, err, &p)
			require.Equal(t, rank, p.Failures[0].Rank)
			require.Equal(t, world.Rank() == rank, errors.Is(err, errNone))

			best, err := minimize(ctx, world, parabolas(world.Rank()))
			require.InDelta(t, 1, best.X[0], 1e-3)
			return err
		})
	}
}

// A panic continues at its rank, and corrupts the communicator.
func TestPanics(t *testing.T) {
	for rank := range 3 {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			_, err := minimize(ctx, world, func(ctx context.Context, x, grad []float64) (float64, error) {
				if world.Rank() == rank {
					panic("a bug")
				}
				return parabolas(world.Rank())(ctx, x, grad)
			})
			return err
		}, mpicx.WithRanks(3))
		var p *mpicx.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, rank, p.Rank)
	}
}

// Whichever rank dies, and whenever: the others have the minimum or the death, and none hangs.
func TestDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for rank := range 3 {
		for k := 1; ; k++ {
			plan := fmt.Sprintf("kill %d at operation %d", rank, k)
			killed := mpicxtest.RunFaults(t, 3, plan, func(ctx context.Context, world *mpicx.Comm) error {
				_, err := minimize(ctx, world, parabolas(world.Rank()))
				if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
					require.Equal(t, []int{rank}, c.Dead)
					return nil
				}
				return err
			})
			if len(killed) == 0 {
				break
			}
		}
	}
}
