package distributed_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/krylov/distributed"
	"github.com/mpicx/go-mpicx/examples/krylov/solver"
	"github.com/mpicx/go-mpicx/examples/krylov/sparse"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

var matrices = []string{"convection-64.mtx.gz", "graphene-64.mtx.gz", "integer-4.mtx", "petersen.mtx", "skew-6.mtx"}

func read(t testing.TB, name string) *sparse.CSR {
	m, err := sparse.ReadFile("../../../testdata/matrices/" + name)
	require.NoError(t, err)
	return m
}

// The product on any number of ranks is that of the whole matrix.
func TestApply(t *testing.T) {
	for _, name := range matrices {
		for _, ranks := range []int{1, 2, 3, 8} {
			t.Run(fmt.Sprintf("%s/%d", name, ranks), func(t *testing.T) {
				m := read(t, name)
				x, want := make([]float64, m.Cols), make([]float64, m.Rows)
				for i := range x {
					x[i] = math.Sin(float64(i))
				}
				m.MulVec(want, x)
				offsets := sparse.Partition(m, ranks)
				mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
					lo, hi := offsets[world.Rank()], offsets[world.Rank()+1]
					local, err := sparse.Localize(m, offsets, world.Rank())
					if err != nil {
						return err
					}
					a := distributed.NewOperator(world, local)
					y := make([]float64, hi-lo)
					for range 3 {
						clear(y)
						a.Apply(ctx, y, x[lo:hi])
						assert.InDeltaSlice(t, want[lo:hi], y, 1e-14)
					}
					return nil
				})
			})
		}
	}
}

// A product that a peer's error interrupts throws it, and the next one is right.
func TestApplyInterrupted(t *testing.T) {
	m := read(t, "convection-64.mtx.gz")
	x, want := make([]float64, m.Cols), make([]float64, m.Rows)
	for i := range x {
		x[i] = math.Cos(float64(i))
	}
	m.MulVec(want, x)
	offsets := sparse.Partition(m, 4)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		lo, hi := offsets[world.Rank()], offsets[world.Rank()+1]
		local, err := sparse.Localize(m, offsets, world.Rank())
		if err != nil {
			return err
		}
		a := distributed.NewOperator(world, local)
		y := make([]float64, hi-lo)
		for round := range 10 {
			err := world.Try(ctx, func(ctx context.Context) error {
				if world.Rank() == round%4 {
					return fmt.Errorf("round %d", round)
				}
				for {
					a.Apply(ctx, y, y)
				}
			})
			assert.ErrorContains(t, err, fmt.Sprintf("round %d", round))
			// Inside TryAll, or the next round's error might come to a rank here.
			if err := world.TryAll(ctx, func(ctx context.Context) error {
				a.Apply(ctx, y, x[lo:hi])
				return nil
			}); err != nil {
				return err
			}
			assert.InDeltaSlice(t, want[lo:hi], y, 1e-14)
		}
		return nil
	})
}

func TestSolve(t *testing.T) {
	m := read(t, "convection-64.mtx.gz")
	b := make([]float64, m.Rows)
	for i := range b {
		b[i] = 1
	}
	offsets := sparse.Partition(m, 3)
	for name, method := range map[string]solver.Method{"gmres": solver.GMRES, "bicgstab": solver.BiCGStab} {
		for precond, make_ := range map[string]func(*sparse.Local) (solver.Operator, error){
			"jacobi": distributed.Jacobi, "blockjacobi": distributed.BlockJacobi,
		} {
			t.Run(name+"/"+precond, func(t *testing.T) {
				mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
					lo, hi := offsets[world.Rank()], offsets[world.Rank()+1]
					local, err := sparse.Localize(m, offsets, world.Rank())
					if err != nil {
						return err
					}
					p, err := make_(local)
					if err != nil {
						return err
					}
					sys := solver.System{Space: distributed.Space{Comm: world}, A: distributed.NewOperator(world, local), M: p, B: b[lo:hi]}
					x := make([]float64, hi-lo)
					res, err := method(ctx, sys, x, solver.Options{Tol: 1e-9, MaxIter: 500})
					assert.True(t, res.Converged)
					assert.LessOrEqual(t, sys.TrueResidual(ctx, x), 1.1e-9)
					return err
				})
			})
		}
	}
}

func TestJacobiZeroDiagonal(t *testing.T) {
	m := read(t, "petersen.mtx")
	local, err := sparse.Localize(m, sparse.Partition(m, 2), 1)
	require.NoError(t, err)
	_, err = distributed.Jacobi(local)
	assert.EqualError(t, err, "jacobi: the diagonal is 0 in row 5, expected none there")
	_, err = distributed.BlockJacobi(local)
	var pivot *sparse.PivotError
	assert.ErrorAs(t, err, &pivot)
}
