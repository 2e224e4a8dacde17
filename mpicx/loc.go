package mpicx

import "cmp"

// A Loc is a value and its location: its rank, or its index in data that the ranks share.
// MinLoc and MaxLoc combine Locs:
//
//	least, err := mpicx.AllreduceValue(c, mpicx.Loc[float64]{Value: x, Index: c.Rank()}, mpicx.MinLoc).Get(ctx)
type Loc[T cmp.Ordered] struct {
	Value T
	Index int
}

// MinLoc returns the smaller value with its index, and of two equal values the one with the
// lower index (MPI_MINLOC). If a value is NaN, the result is NaN, as with Min.
func MinLoc[T cmp.Ordered](a, b Loc[T]) Loc[T] { return better(a, b, a.Value < b.Value) }

// MaxLoc is MinLoc for the larger value (MPI_MAXLOC).
func MaxLoc[T cmp.Ordered](a, b Loc[T]) Loc[T] { return better(a, b, a.Value > b.Value) }

// better returns the better of a and b: the one that isFirst, or that is a NaN. If both or neither
// are, it returns the one with the lower index.
func better[T cmp.Ordered](a, b Loc[T], isFirst bool) Loc[T] {
	aNaN, bNaN := a.Value != a.Value, b.Value != b.Value
	switch tie := a.Value == b.Value || aNaN && bNaN; {
	case tie && a.Index <= b.Index, !tie && (aNaN || isFirst && !bNaN):
		return a
	}
	return b
}
