package distributed

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/examples/krylov/solver"
	"github.com/mpicx/go-mpicx/examples/krylov/sparse"
)

// Jacobi returns the preconditioner that divides by the matrix's diagonal. It is
// an error if that has a zero.
func Jacobi(local *sparse.Local) (solver.Operator, error) {
	inverse := local.DiagonalBlock().Diagonal()
	for i, d := range inverse {
		if d == 0 {
			return nil, fmt.Errorf("jacobi: the diagonal is 0 in row %d, expected none there", local.First+i)
		}
		inverse[i] = 1 / d
	}
	return solver.OperatorFunc(func(_ context.Context, z, r []float64) {
		for i, d := range inverse {
			z[i] = d * r[i]
		}
	}), nil
}

// BlockJacobi returns the preconditioner that solves with the incomplete
// factorization of each rank's diagonal block. The error is a *sparse.PivotError.
func BlockJacobi(local *sparse.Local) (solver.Operator, error) {
	ilu, err := sparse.ILU0(local.DiagonalBlock())
	if err != nil {
		return nil, fmt.Errorf("blockjacobi: rows from %d: %w", local.First, err)
	}
	return solver.OperatorFunc(func(_ context.Context, z, r []float64) { ilu.Solve(z, r) }), nil
}
