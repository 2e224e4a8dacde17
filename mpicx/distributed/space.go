package distributed

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/exact"
)

// A Space is that of vectors divided among the ranks of Comm.
type Space struct{ Comm *mpicx.Comm }

// Sum adds up over all ranks.
func (s Space) Sum(parts, sums []float64) *future.Future[struct{}] {
	return mpicx.Allreduce(s.Comm, parts, sums, mpicx.Sum)
}

// An ExactSpace is a Space whose inner products are rounded once: they have the same bits on any
// number of ranks. So has all that a method computes, if its matrix is [Matrix.Ordered], and its
// preconditioner [Jacobi] or none.
type ExactSpace struct{ Comm *mpicx.Comm }

// Sum adds up over all ranks, as Space does.
func (s ExactSpace) Sum(parts, sums []float64) *future.Future[struct{}] {
	return Space(s).Sum(parts, sums)
}

// Dot computes inner products for the methods: see [krylov.Dotter].
func (s ExactSpace) Dot(ctx context.Context, sums []float64, x, y [][]float64) {
	products := make([]exact.Sum, len(sums))
	for i := range products {
		products[i].AddProducts(x[i], y[i])
	}
	exact.Allreduce(s.Comm, products, products).MustWait(ctx)
	for i := range products {
		sums[i] = products[i].Float64()
	}
}
