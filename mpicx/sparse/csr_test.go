package sparse

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewCSR(t *testing.T) {
	m, err := NewCSR(4, 3, []Triplet{{3, 2, 5}, {0, 2, 1}, {0, 0, 2}, {3, 2, -1}, {0, 2, 0.5}, {1, 1, 0}})
	require.NoError(t, err)
	requireValid(t, m)
	assert.Equal(t, &CSR{
		Rows: 4, Cols: 3,
		RowPtr: []int{0, 2, 3, 3, 4},
		ColIdx: []int32{0, 2, 1, 2},
		Val:    []float64{2, 1.5, 0, 4},
	}, m)
	assert.Equal(t, 4, m.NNZ())
	assert.Equal(t, []float64{2, 0, 0}, m.Diagonal())
	assert.Equal(t, 1.5, m.At(0, 2))
	assert.Zero(t, m.At(2, 2))
	cols, vals := m.Row(0)
	assert.Equal(t, []int32{0, 2}, cols)
	assert.Equal(t, []float64{2, 1.5}, vals)

	for _, tt := range []struct {
		rows, cols int
		at         Triplet
		want       string
	}{
		{2, 3, Triplet{2, 0, 1}, "sparse: entry 0 is at (2, 0), expected indices from 0 in a matrix of 2 x 3"},
		{2, 3, Triplet{0, 3, 1}, "sparse: entry 0 is at (0, 3), expected indices from 0 in a matrix of 2 x 3"},
		{2, 3, Triplet{-1, 0, 1}, "sparse: entry 0 is at (-1, 0), expected indices from 0 in a matrix of 2 x 3"},
		{2, 3, Triplet{0, -1, 1}, "sparse: entry 0 is at (0, -1), expected indices from 0 in a matrix of 2 x 3"},
		{-1, 3, Triplet{}, "sparse: a matrix of -1 x 3, expected 0 to 2147483647 rows and columns"},
		{1, -2, Triplet{}, "sparse: a matrix of 1 x -2, expected 0 to 2147483647 rows and columns"},
	} {
		_, err := NewCSR(tt.rows, tt.cols, []Triplet{tt.at})
		assert.EqualError(t, err, tt.want)
	}
}

// Floating-point sums depend on the order of addition, which is that of the entries.
func TestNewCSRAddsUpInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	var ts []Triplet
	want := 0.0
	for range 100 {
		v := rng.NormFloat64()
		want += v
		ts = append(ts, Triplet{0, 1, v}, Triplet{0, 0, 1})
	}
	m, err := NewCSR(1, 2, ts)
	require.NoError(t, err)
	assert.Equal(t, []float64{100, want}, m.Val)
}

func TestMulVecEqualsDense(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		m := random(rng, rng.IntN(20), rng.IntN(20), rng.IntN(60))
		requireValid(t, m)
		x, want := integers(rng, m.Cols), make([]float64, m.Rows)
		for i := range want {
			for j := range x {
				want[i] += m.At(i, j) * x[j]
			}
		}
		y := integers(rng, m.Rows)
		m.MulVec(y, x)
		assert.Equal(t, want, y)
	}
}

func TestMulVecPanics(t *testing.T) {
	m := &CSR{Rows: 2, Cols: 3, RowPtr: []int{0, 0, 0}}
	assert.PanicsWithValue(t, "sparse: MulVec of a 2 x 3 matrix: x has 2 elements, y has 2",
		func() { m.MulVec(make([]float64, 2), make([]float64, 2)) })
	assert.Panics(t, func() { m.MulVec(make([]float64, 3), make([]float64, 3)) })
}

// random returns a matrix with integer values, so that sums are exact in any
// order. Some rows are empty, others full of duplicates.
func random(rng *rand.Rand, rows, cols, entries int) *CSR {
	var ts []Triplet
	for range entries {
		if rows > 0 && cols > 0 {
			ts = append(ts, Triplet{int32(rng.IntN(rows)), int32(rng.IntN(cols)), float64(rng.IntN(19) - 9)})
		}
	}
	m, err := NewCSR(rows, cols, ts)
	if err != nil {
		panic(err)
	}
	return m
}

// integers returns a vector of n small integers.
func integers(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(rng.IntN(19) - 9)
	}
	return x
}

// requireValid checks what the documentation of CSR promises.
func requireValid(t testing.TB, m *CSR) {
	t.Helper()
	require.Len(t, m.RowPtr, m.Rows+1)
	require.Zero(t, m.RowPtr[0])
	require.True(t, slices.IsSorted(m.RowPtr))
	require.Equal(t, len(m.Val), m.RowPtr[m.Rows])
	require.Len(t, m.ColIdx, len(m.Val))
	for i := range m.Rows {
		last := int32(-1)
		cols, _ := m.Row(i)
		for _, j := range cols {
			if j <= last || int(j) >= m.Cols {
				t.Fatalf("row %d has columns %v of %d", i, cols, m.Cols)
			}
			last = j
		}
	}
}
