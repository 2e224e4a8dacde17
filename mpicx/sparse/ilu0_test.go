package sparse

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If there is no fill-in to drop, as for a full matrix, ILU(0) is exact.
func TestILU0SolvesFull(t *testing.T) {
	const n = 30
	rng := rand.New(rand.NewPCG(7, 8))
	var ts []Triplet
	for i := range int32(n) {
		ts = append(ts, Triplet{i, i, n})
		for j := range int32(n) {
			ts = append(ts, Triplet{i, j, rng.Float64()})
		}
	}
	m, err := NewCSR(n, n, ts)
	require.NoError(t, err)
	before := append([]float64(nil), m.Val...)
	f, err := ILU0(m)
	require.NoError(t, err)
	assert.Equal(t, before, m.Val)
	x, b := integers(rng, n), make([]float64, n)
	m.MulVec(b, x)
	f.Solve(b, b) // in place
	assert.InDeltaSlice(t, x, b, 1e-12)
	assert.PanicsWithValue(t, "sparse: ILU.Solve of 30 rows: z has 30 elements, r has 29", func() { f.Solve(b, b[1:]) })
}

// (L·U)[i][j] = A[i][j] wherever A has an entry: what defines ILU(0).
func TestILU0KeepsThePattern(t *testing.T) {
	m := readTestdata(t, "convection-64.mtx.gz")
	f, err := ILU0(m)
	require.NoError(t, err)
	lower := func(i, k int) float64 {
		if i == k {
			return 1
		}
		return f.lu.At(i, k)
	}
	for i := range m.Rows {
		cols, vals := m.Row(i)
		for c, j := range cols {
			sum := 0.0
			for _, k := range cols {
				if int(k) <= i && k <= j {
					sum += lower(i, int(k)) * f.lu.At(int(k), int(j))
				}
			}
			require.InDelta(t, vals[c], sum, 1e-12, "row %d, column %d", i, j)
		}
	}
}

func TestILU0Errors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []Triplet
		row     int
		pivot   float64
	}{
		{"no diagonal", []Triplet{{0, 0, 1}, {1, 0, 1}}, 1, 0},
		{"zero", []Triplet{{0, 0, 0}, {1, 1, 1}}, 0, 0},
		{"becomes zero", []Triplet{{0, 0, 1}, {0, 1, 2}, {1, 0, 2}, {1, 1, 4}}, 1, 0},
		{"becomes infinite", []Triplet{{0, 0, 1e-10}, {0, 1, 1}, {1, 0, 1e300}, {1, 1, 1}}, 1, math.Inf(-1)},
		{"inverse overflows", []Triplet{{0, 0, 1}, {1, 1, 1e-310}}, 1, 1e-310},
		{"what rounding leaves", []Triplet{{0, 0, 3}, {0, 1, 0.1}, {1, 0, 0.3}, {1, 1, 0.01 + 4e-18}}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := NewCSR(2, 2, tt.entries)
			require.NoError(t, err)
			_, err = ILU0(m)
			var pivot *PivotError
			require.ErrorAs(t, err, &pivot)
			assert.Equal(t, tt.row, pivot.Row)
			assert.True(t, pivot.Pivot == tt.pivot || math.Abs(pivot.Pivot-tt.pivot) < 1e-17, "%v", pivot.Pivot)
		})
	}
	assert.EqualError(t, &PivotError{Row: 1}, "sparse: ILU(0) of row 1: the pivot is 0, expected a finite number that is not negligible in its row")
	_, err := ILU0(&CSR{Rows: 1, Cols: 2, RowPtr: []int{0, 0}})
	assert.EqualError(t, err, "sparse: ILU(0) of a 1 x 2 matrix, expected a square one")
	f, err := ILU0(&CSR{RowPtr: []int{0}})
	require.NoError(t, err)
	f.Solve(nil, nil)
}
