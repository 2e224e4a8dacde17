package binomial_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/binomial"
)

const maxSize = 200

// Every rank but 0 is the child of its parent, and of no other. The subtree below a child has the
// ranks from it up to, but without, the next child: 2^k, or all that there are. So a broadcast, to
// the children with the highest index first, takes as many rounds as the logarithm of the size.
func TestSubtreesAreRanges(t *testing.T) {
	for size := 1; size <= maxSize; size++ {
		var below func(rank int) []int
		below = func(rank int) []int {
			ranks := []int{rank}
			for k := range binomial.Children(rank, size) {
				ranks = append(ranks, below(binomial.Child(rank, k))...)
			}
			return ranks
		}
		require.Len(t, below(0), size)
		for rank := range size {
			for k := range binomial.Children(rank, size) {
				child := binomial.Child(rank, k)
				require.Equal(t, rank, binomial.Parent(child), "parent of %d", child)
				require.Equal(t, k, binomial.ChildIndex(child), "index of %d", child)
				var want []int
				for r := child; r < min(binomial.Child(rank, k+1), size); r++ {
					want = append(want, r)
				}
				require.Equal(t, want, below(child), "ranks below %d of %d", child, size)
				if binomial.Child(rank, k+1) <= size {
					require.Len(t, want, 1<<k)
				}
			}
		}
	}
}

// TestGraph: links go both ways, each rank has each neighbour once, and those are
// the ones of the definition.
func TestGraph(t *testing.T) {
	for n := 1; n <= 70; n++ {
		for r := range n {
			want := make(map[int]bool)
			for step := 1; step < n; step *= 2 {
				want[(r+step)%n], want[(r-step+n)%n] = true, true
			}
			got := make(map[int]bool)
			for i := range binomial.Degree(n) {
				if v := binomial.Neighbor(r, n, i); v >= 0 {
					require.False(t, got[v], "rank %d of %d: neighbour %d twice", r, n, v)
					got[v] = true
					require.Equal(t, i, binomial.NeighborIndex(r, n, v))
					require.GreaterOrEqual(t, binomial.NeighborIndex(v, n, r), 0)
				}
			}
			require.Equal(t, want, got, "rank %d of %d", r, n)
			require.Equal(t, -1, binomial.NeighborIndex(r, n, r))
		}
	}
}
