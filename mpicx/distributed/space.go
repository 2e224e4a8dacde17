package distributed

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A Space is that of vectors divided among the ranks of Comm.
type Space struct{ Comm *mpicx.Comm }

// Sum adds up over all ranks.
func (s Space) Sum(parts, sums []float64) *future.Future[struct{}] {
	return mpicx.Allreduce(s.Comm, parts, sums, mpicx.Sum)
}
