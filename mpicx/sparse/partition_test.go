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
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, Partition(withCounts(tt.counts).RowPtr, tt.n))
		})
	}
	assert.PanicsWithValue(t, "sparse: Partition among 0 ranks, expected at least 1", func() { Partition(withCounts(nil).RowPtr, 0) })
}

func TestPartitionIsOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		counts := make([]int, rng.IntN(9))
		for i := range counts {
			counts[i] = rng.IntN(8)
		}
		n := 1 + rng.IntN(5)
		offsets := Partition(withCounts(counts).RowPtr, n)
		require.Len(t, offsets, n+1)
		require.Zero(t, offsets[0])
		require.Equal(t, len(counts), offsets[n])
		require.True(t, slices.IsSorted(offsets), "%v", offsets)
		most := 0
		for r := range n {
			most = max(most, total(counts[offsets[r]:offsets[r+1]]))
		}
		require.Equal(t, leastMost(counts, n), most, "%v among %d: %v", counts, n, offsets)
	}
}

// leastMost tries all ways of dividing counts into n blocks.
func leastMost(counts []int, n int) int {
	if n == 1 {
		return total(counts)
	}
	least := total(counts)
	for k := range len(counts) + 1 {
		least = min(least, max(total(counts[:k]), leastMost(counts[k:], n-1)))
	}
	return least
}

func total(counts []int) int {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	return sum
}

// withCounts returns a matrix with the given number of entries in each row.
func withCounts(counts []int) *CSR {
	m := &CSR{Rows: len(counts), RowPtr: []int{0}}
	for _, c := range counts {
		m.RowPtr = append(m.RowPtr, m.RowPtr[len(m.RowPtr)-1]+c)
		for j := range c {
			m.ColIdx = append(m.ColIdx, int32(j))
			m.Val = append(m.Val, 1)
			m.Cols = max(m.Cols, j+1)
		}
	}
	return m
}
