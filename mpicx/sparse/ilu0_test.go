package sparse

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// If there is no fill-in to drop, as for a tridiagonal matrix, ILU(0) is exact.
func TestILU0SolvesTridiagonal(t *testing.T) {
	const n = 30
	rng := rand.New(rand.NewPCG(7, 8))
	var ts []Triplet
	for i := range int32(n) {
		ts = append(ts, Triplet{i, i, 4 + rng.Float64()})
		if i > 0 {
			ts = append(ts, Triplet{i, i - 1, rng.Float64() - 2}, Triplet{i - 1, i, rng.Float64()})
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

func TestILU0PreconditionsCG(t *testing.T) {
	for _, name := range []string{"poisson2d-128.mtx.gz", "poisson3d-20.mtx.gz", "anisotropic-64.mtx.gz", "graphene-64.mtx.gz"} {
		t.Run(name, func(t *testing.T) {
			m := readTestdata(t, name)
			f, err := ILU0(m)
			require.NoError(t, err)

			// Symmetric: u·M⁻¹v = v·M⁻¹u. Positive definite: u·M⁻¹u > 0.
			rng := rand.New(rand.NewPCG(9, 10))
			u, v := integers(rng, m.Rows), integers(rng, m.Rows)
			mu, mv := make([]float64, m.Rows), make([]float64, m.Rows)
			f.Solve(mu, u)
			f.Solve(mv, v)
			assert.Positive(t, inner(u, mu))
			assert.Positive(t, inner(v, mv))
			assert.InDelta(t, inner(u, mv), inner(v, mu), 1e-10*inner(u, mu))

			plain := cg(t, m, func(_ context.Context, z, r []float64) { copy(z, r) })
			preconditioned := cg(t, m, func(_ context.Context, z, r []float64) { f.Solve(z, r) })
			t.Logf("%d iterations, %d with ILU(0)", plain, preconditioned)
			assert.Less(t, plain, 350)
			assert.Less(t, preconditioned, plain*2/3)
		})
	}
}

// cg returns the number of iterations in which the conjugate gradient method, from 0 and with
// the right-hand side 1 2 … 7 1 2 …, reduces the residual by 1e8.
func cg(t *testing.T, m *CSR, precondition krylov.OperatorFunc) int {
	b := make([]float64, m.Rows)
	for i := range b {
		b[i] = float64(1 + i%7)
	}
	apply := krylov.OperatorFunc(func(_ context.Context, y, x []float64) { m.MulVec(y, x) })
	sys := krylov.System{Space: krylov.Alone{}, A: apply, M: precondition, B: b}
	res, err := krylov.CG(t.Context(), sys, make([]float64, m.Rows), krylov.Options{Tol: 1e-8, MaxIter: 10 * m.Rows})
	require.NoError(t, err)
	return res.Iterations
}

func inner(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func TestILU0Errors(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name    string
		entries []Triplet
		want    PivotError
		text    string
	}{
		{"no diagonal", []Triplet{{0, 0, 1}, {1, 0, 1}}, PivotError{Row: 1},
			"sparse: ILU(0) of row 1: the pivot is 0, expected a finite number that is not negligible in its row"},
		{"zero", []Triplet{{0, 0, 0}, {1, 1, 1}}, PivotError{Row: 0}, ""},
		{"becomes zero", []Triplet{{0, 0, 1}, {0, 1, 2}, {1, 0, 2}, {1, 1, 4}}, PivotError{Row: 1}, ""},
		{"becomes infinite", []Triplet{{0, 0, 1e-10}, {0, 1, 1}, {1, 0, 1e300}, {1, 1, 1}}, PivotError{Row: 1, Pivot: -inf}, ""},
		{"inverse overflows", []Triplet{{0, 0, 1}, {1, 1, 1e-310}}, PivotError{Row: 1}, ""},
		{"what rounding leaves", []Triplet{{0, 0, 3}, {0, 1, 0.1}, {1, 0, 0.3}, {1, 1, 0.01 + 4e-18}}, PivotError{Row: 1}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := NewCSR(2, 2, tt.entries)
			require.NoError(t, err)
			_, err = ILU0(m)
			var pivot *PivotError
			require.ErrorAs(t, err, &pivot)
			assert.Equal(t, tt.want.Row, pivot.Row)
			if math.IsInf(tt.want.Pivot, 0) {
				assert.Equal(t, tt.want.Pivot, pivot.Pivot)
			} else {
				assert.InDelta(t, tt.want.Pivot, pivot.Pivot, 1e-17)
			}
			if tt.text != "" {
				assert.EqualError(t, err, tt.text)
			}
		})
	}
	_, err := ILU0(&CSR{Rows: 1, Cols: 2, RowPtr: []int{0, 0}})
	assert.EqualError(t, err, "sparse: ILU(0) of a 1 x 2 matrix, expected a square one")
	f, err := ILU0(&CSR{RowPtr: []int{0}})
	require.NoError(t, err)
	f.Solve(nil, nil)
}
