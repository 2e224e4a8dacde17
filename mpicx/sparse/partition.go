package sparse

import (
	"fmt"
	"sort"
)

// Partition divides rows among n ranks in contiguous blocks. Row i has rowPtr[i+1]-rowPtr[i]
// entries, as in a [CSR]. Rank r gets the rows offsets[r] to offsets[r+1]-1 of the n+1 offsets
// returned. The largest number of entries in a block is the least that is possible. Within that
// limit, each block ends as near to its even share as possible. Blocks may be empty, and some
// are if n exceeds the number of rows. Partition panics if n < 1.
//
// The least maximum is found by bisection over its value. Each try is a greedy walk in O(n·log
// Rows): the "parametric search" for the chains-on-chains problem (Pinar and Aykanat, J.
// Parallel Distrib. Comput. 64, 2004).
func Partition(rowPtr []int, n int) (offsets []int) {
	if n < 1 {
		panic(fmt.Sprintf("sparse: Partition among %d ranks, expected at least 1", n))
	}
	rows := len(rowPtr) - 1
	total := rowPtr[rows]
	most := sort.Search(total, func(most int) bool { // with total itself all rows fit into one block
		row := 0
		for range n {
			row = lastFit(rowPtr, row, most)
		}
		return row == rows
	})

	// Block r must not begin before first[r]: otherwise the rest would not fit.
	first := make([]int, n+1)
	first[n] = rows
	for r := n - 1; r > 0; r-- {
		first[r] = firstFit(rowPtr, first[r+1], most)
	}
	offsets = make([]int, n+1)
	for r := 1; r < n; r++ {
		share := nearest(rowPtr, float64(total)*float64(r)/float64(n))
		offsets[r] = min(max(share, first[r]), lastFit(rowPtr, offsets[r-1], most))
	}
	offsets[n] = rows
	return offsets
}

// lastFit returns the largest end for which rows lo to end-1 have at most most entries.
func lastFit(rowPtr []int, lo, most int) int {
	return lo + sort.Search(len(rowPtr)-1-lo, func(k int) bool { return rowPtr[lo+k+1]-rowPtr[lo] > most })
}

// firstFit returns the least lo for which rows lo to end-1 have at most most entries.
func firstFit(rowPtr []int, end, most int) int {
	return sort.Search(end, func(lo int) bool { return rowPtr[end]-rowPtr[lo] <= most })
}

// nearest returns the row before which the number of entries is closest to want.
func nearest(rowPtr []int, want float64) int {
	i := sort.Search(len(rowPtr)-1, func(i int) bool { return float64(rowPtr[i]) >= want })
	if i > 0 && want-float64(rowPtr[i-1]) < float64(rowPtr[i])-want {
		i--
	}
	return i
}
