package distributed

import (
	"context"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// A Part is consecutive elements of a vector, from the element First of it on.
type Part struct {
	First  int
	Values []float64
}

// Vector returns the elements in this rank's rows of the vector that the ranks have
// between them in parts, each rank any number of them, and which elements are in no
// part: they are 0. It is collective: if it may fail, call it inside Try.
func (m *Matrix) Vector(ctx context.Context, parts ...Part) (x []float64, missing []bool, err error) {
	n := m.Size()
	for _, p := range parts {
		if p.First < 0 || p.First > n-len(p.Values) {
			return nil, nil, fmt.Errorf("distributed: a part of %d elements from %d on, expected it inside the %d of the vector", len(p.Values), p.First, n)
		}
	}
	defer hook.Catch(&err)
	entries := assemble(ctx, m.comm, m.Offsets, func(yield func(sparse.Triplet) bool) {
		for _, p := range parts {
			for i, v := range p.Values {
				if !yield(sparse.Triplet{Row: int32(p.First + i), Val: v}) {
					return
				}
			}
		}
	})
	x, missing = make([]float64, m.Rows()), slices.Repeat([]bool{true}, m.Rows())
	for _, e := range entries {
		i := int(e.Row) - m.First()
		x[i], missing[i] = e.Val, false
	}
	return x, missing, nil
}
