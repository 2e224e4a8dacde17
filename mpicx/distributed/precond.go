package distributed

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// Jacobi returns the preconditioner that divides by the matrix's diagonal. It is
// an error if that has a zero.
func Jacobi(m *Matrix) (krylov.Operator, error) {
	inverse := m.DiagonalBlock().Diagonal()
	for i, d := range inverse {
		if d == 0 {
			return nil, fmt.Errorf("jacobi: the diagonal is 0 in row %d, expected none there", m.First()+i)
		}
		inverse[i] = 1 / d
	}
	return krylov.OperatorFunc(func(_ context.Context, z, r []float64) {
		for i, d := range inverse {
			z[i] = d * r[i]
		}
	}), nil
}

// BlockJacobi returns the preconditioner that solves with the incomplete
// factorization of each rank's diagonal block. The error is a *sparse.PivotError.
func BlockJacobi(m *Matrix) (krylov.Operator, error) {
	ilu, err := sparse.ILU0(m.DiagonalBlock())
	if err != nil {
		return nil, fmt.Errorf("blockjacobi: rows from %d: %w", m.First(), err)
	}
	return krylov.OperatorFunc(func(_ context.Context, z, r []float64) { ilu.Solve(z, r) }), nil
}
