package sparse

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rows 0 to 1 are rank 0's, 2 to 3 rank 1's, 4 rank 2's:
//
//	1 . | 2 . | 3
//	. 4 | . . | .
//	---------------
//	5 . | 6 . | .
//	. . | . 7 | .
//	---------------
//	. . | . 8 | 9
func TestLocalize(t *testing.T) {
	m, err := NewCSR(5, 5, []Triplet{{0, 0, 1}, {0, 2, 2}, {0, 4, 3}, {1, 1, 4}, {2, 0, 5}, {2, 2, 6}, {3, 3, 7}, {4, 3, 8}, {4, 4, 9}})
	require.NoError(t, err)
	want := []Local{
		{Rank: 0, First: 0, Rows: 2, Ghosts: []int{2, 4}, Neighbours: []Neighbour{
			{Rank: 1, Send: []int{0}, RecvLo: 0, RecvHi: 1},
			{Rank: 2, Send: nil, RecvLo: 1, RecvHi: 2},
		}},
		{Rank: 1, First: 2, Rows: 2, Ghosts: []int{0}, Neighbours: []Neighbour{
			{Rank: 0, Send: []int{0}, RecvLo: 0, RecvHi: 1},
			{Rank: 2, Send: []int{1}, RecvLo: 1, RecvHi: 1},
		}},
		{Rank: 2, First: 4, Rows: 1, Ghosts: []int{3}, Neighbours: []Neighbour{
			{Rank: 0, Send: []int{0}, RecvLo: 0, RecvHi: 0},
			{Rank: 1, Send: nil, RecvLo: 0, RecvHi: 1},
		}},
	}
	blocks := [][]Triplet{{{0, 0, 1}, {1, 1, 4}}, {{0, 0, 6}, {1, 1, 7}}, {{0, 0, 9}}}
	for rank := range want {
		l, err := Localize(m, []int{0, 2, 4, 5}, rank)
		require.NoError(t, err)
		block, err := NewCSR(l.Rows, l.Rows, blocks[rank])
		require.NoError(t, err)
		assert.Equal(t, block, l.DiagonalBlock())
		l.interior, l.boundary, l.boundaryRows = nil, nil, nil
		assert.Equal(t, &want[rank], l)
	}
}

func TestDistributedProductEqualsSerial(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n := rng.IntN(40)
		m := random(rng, n, n, rng.IntN(4*n+1))
		x, want := integers(rng, n), make([]float64, n)
		m.MulVec(want, x)
		for ranks := 1; ranks <= 9; ranks++ {
			offsets := Partition(m, ranks)
			if rng.IntN(2) == 0 {
				offsets = randomOffsets(rng, n, ranks)
			}
			require.Equal(t, want, distributedMul(t, m, offsets, x), "offsets %v", offsets)
		}
	}
}

// distributedMul multiplies as the ranks would, messages being copies.
func distributedMul(t *testing.T, m *CSR, offsets []int, x []float64) []float64 {
	locals := make([]*Local, len(offsets)-1)
	messages := make(map[[2]int][]float64) // by sender and receiver
	for r := range locals {
		l, err := Localize(m, offsets, r)
		require.NoError(t, err)
		requireValid(t, l.interior)
		requireValid(t, l.boundary)
		for _, nb := range l.Neighbours {
			buf := make([]float64, len(nb.Send))
			nb.Pack(buf, x[l.First:l.First+l.Rows])
			messages[[2]int{r, nb.Rank}] = buf
		}
		locals[r] = l
	}
	y := make([]float64, len(x))
	for r, l := range locals {
		ghosts := make([]float64, len(l.Ghosts))
		for _, nb := range l.Neighbours {
			message := messages[[2]int{nb.Rank, r}]
			require.Len(t, message, nb.RecvHi-nb.RecvLo, "from %d to %d", nb.Rank, r)
			copy(ghosts[nb.RecvLo:nb.RecvHi], message)
		}
		own := y[l.First : l.First+l.Rows]
		l.MulInterior(own, x[l.First:l.First+l.Rows])
		l.MulBoundary(own, ghosts)
	}
	return y
}

// randomOffsets divides n rows among ranks anyhow: many ranks get none.
func randomOffsets(rng *rand.Rand, n, ranks int) []int {
	offsets := make([]int, ranks+1)
	for r := 1; r < ranks; r++ {
		offsets[r] = offsets[r-1] + rng.IntN(n-offsets[r-1]+1)
	}
	offsets[ranks] = n
	return offsets
}

func TestLocalizeErrors(t *testing.T) {
	square, wide := &CSR{Rows: 2, Cols: 2, RowPtr: []int{0, 0, 0}}, &CSR{Rows: 2, Cols: 3, RowPtr: []int{0, 0, 0}}
	tests := []struct {
		m       *CSR
		offsets []int
		rank    int
		want    string
	}{
		{wide, []int{0, 2}, 0, "sparse: Localize of a 2 x 3 matrix, expected a square one"},
		{square, []int{0, 3}, 0, "sparse: Localize with offsets [0 3], expected them to rise from 0 to 2"},
		{square, []int{0, 2, 1, 2}, 0, "sparse: Localize with offsets [0 2 1 2], expected them to rise from 0 to 2"},
		{square, []int{1, 2}, 0, "sparse: Localize with offsets [1 2], expected them to rise from 0 to 2"},
		{square, nil, 0, "sparse: Localize with offsets [], expected them to rise from 0 to 2"},
		{square, []int{0, 1, 2}, 2, "sparse: Localize for rank 2, expected 0 to 1"},
		{square, []int{0, 1, 2}, -1, "sparse: Localize for rank -1, expected 0 to 1"},
	}
	for _, tt := range tests {
		_, err := Localize(tt.m, tt.offsets, tt.rank)
		assert.EqualError(t, err, tt.want)
	}
	l, err := Localize(square, []int{0, 2}, 0)
	require.NoError(t, err)
	assert.PanicsWithValue(t, "sparse: MulBoundary with 2 rows and 0 ghosts: y has 2 elements, ghosts has 1",
		func() { l.MulBoundary(make([]float64, 2), make([]float64, 1)) })
}
