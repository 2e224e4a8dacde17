package sparse

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPartition(t *testing.T) {
	tests := []struct {
		name   string
		counts []int // entries in each row
		n      int
		want   []int
	}{
		{"one rank", []int{1, 2, 3}, 1, []int{0, 3}},
		{"even", []int{5, 5, 5, 5, 5, 5}, 3, []int{0, 2, 4, 6}},
		{"not all in the first blocks", []int{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 9, []int{0, 1, 2, 3, 4, 6, 7, 8, 9, 10}},
		{"a heavy row", []int{1, 1, 9, 1, 1}, 3, []int{0, 2, 3, 5}},
		{"empty rows", []int{0, 4, 0, 0, 4, 0}, 2, []int{0, 2, 6}},
		{"more ranks than rows", []int{3, 3}, 4, []int{0, 1, 1, 2, 2}},
		{"no rows", nil, 3, []int{0, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, Partition(rowPtr(tt.counts), tt.n)) })
	}
	assert.PanicsWithValue(t, "sparse: Partition among 0 ranks, expected at least 1", func() { Partition(rowPtr(nil), 0) })
}

func TestPartitionIsOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		counts := make([]int, rng.IntN(9))
		for i := range counts {
			counts[i] = rng.IntN(8)
		}
		n, ptr := 1+rng.IntN(5), rowPtr(counts)
		offsets := Partition(ptr, n)
		require.Len(t, offsets, n+1)
		require.Zero(t, offsets[0])
		require.Equal(t, len(counts), offsets[n])
		require.True(t, slices.IsSorted(offsets), "%v", offsets)
		most := 0
		for r := range n {
			most = max(most, ptr[offsets[r+1]]-ptr[offsets[r]])
		}
		require.Equal(t, leastMost(ptr, n), most, "%v among %d: %v", counts, n, offsets)
	}
}

// leastMost tries all ways of dividing rows into n blocks.
func leastMost(ptr []int, n int) int {
	least := ptr[len(ptr)-1] - ptr[0]
	if n > 1 {
		for k := range ptr {
			least = min(least, max(ptr[k]-ptr[0], leastMost(ptr[k:], n-1)))
		}
	}
	return least
}

// rowPtr returns where the rows begin that have these numbers of entries.
func rowPtr(counts []int) []int {
	ptr := []int{0}
	for i, c := range counts {
		ptr = append(ptr, ptr[i]+c)
	}
	return ptr
}
