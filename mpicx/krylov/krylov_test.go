package krylov_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

var methods = map[string]krylov.Method{"cg": krylov.CG, "gmres": krylov.GMRES, "bicgstab": krylov.BiCGStab}

// system returns A·x = b of a matrix of testdata, without ranks, and x.
func system(t testing.TB, name string) (krylov.System, []float64) {
	m, err := sparse.ReadFile(filepath.Join("../../testdata/matrices", name))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	x, b := make([]float64, m.Cols), make([]float64, m.Rows)
	for i := range x {
		x[i] = 0.5 + random.Float64()
	}
	m.MulVec(b, x)
	apply := func(_ context.Context, y, x []float64) { m.MulVec(y, x) }
	return krylov.System{Space: krylov.Alone{}, A: krylov.OperatorFunc(apply), B: b}, x
}

// distance returns the norm of x - y relative to that of y.
func distance(x, y []float64) float64 {
	d := slices.Clone(x)
	for i := range d {
		d[i] -= y[i]
	}
	return math.Sqrt(squares(d) / squares(y))
}

func squares(x []float64) (s float64) {
	for _, v := range x {
		s += v * v
	}
	return s
}

// everyMethod runs a test for each method.
func everyMethod(t *testing.T, test func(*testing.T, krylov.Method)) {
	for name, method := range methods {
		t.Run(name, func(t *testing.T) { test(t, method) })
	}
}

// gap is how far the residual of the current iterate is from that which the method has, relative to
// the right-hand side.
func gap(ctx context.Context, sys krylov.System, s *krylov.State) float64 {
	now, r, y := make([]float64, len(sys.B)), make([]float64, len(sys.B)), make([]float64, len(sys.B))
	s.Current(ctx, now, r)
	sys.A.Apply(ctx, y, now)
	for i, b := range sys.B {
		y[i] += r[i] - b
	}
	return math.Sqrt(squares(y) / squares(sys.B))
}

func TestSolves(t *testing.T) {
	for _, test := range []struct {
		matrix  string
		methods []string
	}{
		{"graphene-64.mtx.gz", []string{"cg", "gmres", "bicgstab"}},
		{"poisson3d-20.mtx.gz", []string{"cg", "gmres", "bicgstab"}},
		{"convection-64.mtx.gz", []string{"gmres", "bicgstab"}},
		{"hilbert-6.mtx", []string{"cg", "gmres"}},
		{"petersen.mtx", []string{"gmres", "bicgstab"}},
		{"skew-6.mtx", []string{"gmres"}},
	} {
		for _, name := range test.methods {
			t.Run(test.matrix+"/"+name, func(t *testing.T) {
				ctx := context.Background()
				sys, want := system(t, test.matrix)
				x := make([]float64, len(want))
				calls := 0
				res, err := methods[name](ctx, sys, x, krylov.Options{Tol: 1e-10, MaxIter: 1000, Observe: func(_ context.Context, s *krylov.State) error {
					calls++
					assert.Equal(t, calls, s.Iter)
					return nil
				}})
				require.NoError(t, err)
				assert.True(t, res.Converged, "%+v", res)
				assert.Equal(t, calls, res.Iterations)
				assert.LessOrEqual(t, sys.TrueResidual(ctx, x), 1.01e-10)
				if test.matrix != "hilbert-6.mtx" {
					assert.Less(t, distance(x, want), 1e-8)
				}
			})
		}
	}
}

// products is a Space that notes all sums, and dotter one that computes them as a Dotter.
type products struct{ all [][]float64 }

func (p *products) Sum(parts, sums []float64) *future.Future[struct{}] {
	p.all = append(p.all, slices.Clone(parts))
	return krylov.Alone{}.Sum(parts, sums)
}

type dotter struct{ products }

func (d *dotter) Dot(_ context.Context, sums []float64, x, y [][]float64) {
	clear(sums)
	for k := range sums {
		for i, v := range x[k] {
			sums[k] += v * y[k][i]
		}
	}
	d.all = append(d.all, slices.Clone(sums))
}

// A Dotter is asked for the products whose parts another Space would get.
func TestDotter(t *testing.T) {
	everyMethod(t, func(t *testing.T, method krylov.Method) {
		sys, x := system(t, "poisson3d-20.mtx.gz")
		sys.M = krylov.OperatorFunc(func(_ context.Context, z, r []float64) {
			for i, v := range r {
				z[i] = v / float64(1+i%3)
			}
		})
		p, d := &products{}, &dotter{}
		for _, space := range []krylov.Space{p, d} {
			sys.Space = space
			_, err := method(t.Context(), sys, make([]float64, len(x)), krylov.Options{MaxIter: 12, Restart: 8})
			require.NoError(t, err)
		}
		require.Equal(t, len(p.all), len(d.all))
		for i := range p.all {
			require.InDeltaSlice(t, p.all[i], d.all[i], 1e-9*slices.Max(p.all[i]), "reduction %d", i)
		}
	})
}

// Current gives an iterate and a residual that belong together, in long cycles of GMRES too.
func TestCurrent(t *testing.T) {
	for _, test := range []struct {
		method, matrix   string
		maxIter, restart int
		least            float64
	}{
		{"cg", "poisson3d-20.mtx.gz", 40, 15, 1e-13},
		{"bicgstab", "poisson3d-20.mtx.gz", 40, 15, 1e-13},
		{"gmres", "poisson3d-20.mtx.gz", 40, 15, 1e-13},
		{"gmres", "poisson3d-20.mtx.gz", 150, 150, 1e-11},
		{"gmres", "convection-64.mtx.gz", 150, 150, 1e-11},
		{"gmres", "anisotropic-64.mtx.gz", 150, 150, 1e-11},
		{"gmres", "graphene-64.mtx.gz", 150, 150, 1e-11},
	} {
		t.Run(fmt.Sprint(test.method, " ", test.matrix, " ", test.restart), func(t *testing.T) {
			sys, x := system(t, test.matrix)
			clear(x)
			_, err := methods[test.method](t.Context(), sys, x, krylov.Options{Tol: 1e-12, MaxIter: test.maxIter, Restart: test.restart, Observe: func(ctx context.Context, s *krylov.State) error {
				if test.restart < 100 || s.Iter%10 == 0 {
					assert.LessOrEqual(t, gap(ctx, sys, s), test.least, "iteration %d", s.Iter)
				}
				return nil
			}})
			require.NoError(t, err)
		})
	}
}

// A method that continues from a Snapshot does what it would have done.
func TestFromSnapshot(t *testing.T) {
	everyMethod(t, func(t *testing.T, method krylov.Method) {
		ctx := t.Context()
		sys, want := system(t, "poisson3d-20.mtx.gz")
		opt := krylov.Options{Tol: 1e-8, MaxIter: 500, Restart: 10}
		whole, err := method(ctx, sys, make([]float64, len(want)), opt)
		require.NoError(t, err)

		var snapshot krylov.Snapshot
		stop := errors.New("stop")
		opt.Observe = func(ctx context.Context, s *krylov.State) error {
			switch s.Iter {
			case 10, 20: // saved to twice
				s.Save(ctx, &snapshot)
			case 25:
				return stop
			}
			return nil
		}
		_, err = method(ctx, sys, make([]float64, len(want)), opt)
		require.ErrorIs(t, err, stop)

		x := make([]float64, len(want))
		opt.Observe, opt.From = nil, &snapshot
		rest, err := method(ctx, sys, x, opt)
		require.NoError(t, err)
		assert.True(t, rest.Converged)
		assert.Equal(t, whole.Iterations, 20+rest.Iterations)
		assert.Less(t, distance(x, want), 1e-6)
	})
}

func TestZeroRightHandSide(t *testing.T) {
	everyMethod(t, func(t *testing.T, method krylov.Method) {
		sys, x := system(t, "petersen.mtx")
		clear(sys.B)
		clear(x)
		res, err := method(t.Context(), sys, x, krylov.Options{Tol: 1e-8, MaxIter: 50})
		require.NoError(t, err)
		assert.Equal(t, krylov.Result{Converged: true}, res)
	})
}

// NaN does not end a method: it continues to its last iteration and says that it has not converged.
func TestNaN(t *testing.T) {
	everyMethod(t, func(t *testing.T, method krylov.Method) {
		sys, x := system(t, "poisson3d-20.mtx.gz")
		clear(x)
		res, err := method(t.Context(), sys, x, krylov.Options{Tol: 1e-8, MaxIter: 100, Observe: func(_ context.Context, s *krylov.State) error {
			if s.Iter == 10 {
				s.P[17] = math.NaN()
			}
			return nil
		}})
		require.NoError(t, err)
		assert.Equal(t, 100, res.Iterations)
		assert.False(t, res.Converged)
		assert.True(t, math.IsNaN(res.Residual))
	})
}

// What was lost of a solution comes back from the rest, wherever it was. Of an iterate that is no
// solution, the residual of the lost rows comes to 0, to the tolerance relative to the whole
// right-hand side. The rest is not touched.
func TestInterpolate(t *testing.T) {
	places := map[string]func(i, n int) bool{
		"nowhere":    func(int, int) bool { return false },
		"everywhere": func(int, int) bool { return true },
		"first":      func(i, n int) bool { return i < n/4 },
		"scattered":  func(i, _ int) bool { return i%7 < 2 },
	}
	for _, test := range []struct {
		matrix, method string
		off            float64 // how far the iterate is from the solution
	}{
		{"poisson3d-20.mtx.gz", "cg", 0}, {"poisson3d-20.mtx.gz", "cg", 1}, {"graphene-64.mtx.gz", "cg", 0},
		{"convection-64.mtx.gz", "gmres", 0}, {"convection-64.mtx.gz", "bicgstab", 0},
	} {
		for where, in := range places {
			t.Run(fmt.Sprint(test.matrix, "/", test.method, "/", test.off, "/", where), func(t *testing.T) {
				interpolates(t, test.matrix, methods[test.method], test.off, in)
			})
		}
	}
}

func interpolates(t *testing.T, matrix string, method krylov.Method, off float64, in func(i, n int) bool) {
	sys, want := system(t, matrix)
	x, lost, y := make([]float64, len(want)), make([]bool, len(want)), make([]float64, len(want))
	for i := range x {
		want[i] += off * math.Sin(float64(i))
		x[i], lost[i] = want[i], in(i, len(x))
		if lost[i] {
			x[i] = math.NaN()
		}
	}
	_, err := krylov.Interpolate(t.Context(), sys, x, lost, method, krylov.Options{Tol: 1e-11, MaxIter: 2000})
	require.NoError(t, err)
	sys.A.Apply(t.Context(), y, x)
	for i, b := range sys.B {
		y[i] -= b
		if !lost[i] {
			y[i] = 0
			require.Equal(t, want[i], x[i])
		}
	}
	require.LessOrEqual(t, math.Sqrt(squares(y)/squares(sys.B)), 1.01e-11)
	if off == 0 {
		assert.Less(t, distance(x, want), 1e-8)
	}
}

// An iteration allocates nothing but the futures of its reductions.
func TestAllocations(t *testing.T) {
	everyMethod(t, func(t *testing.T, method krylov.Method) {
		sys, want := system(t, "poisson3d-20.mtx.gz")
		count := func(iterations int) float64 {
			return testing.AllocsPerRun(3, func() {
				_, err := method(t.Context(), sys, make([]float64, len(want)), krylov.Options{MaxIter: iterations})
				require.NoError(t, err)
			})
		}
		per := (count(30) - count(10)) / 20
		assert.LessOrEqual(t, per, 3.2)
	})
}

// If a method cannot continue, it says so, and why.
func TestBreakdown(t *testing.T) {
	negative := krylov.OperatorFunc(func(_ context.Context, z, r []float64) {
		for i, v := range r {
			z[i] = v
			if i >= len(r)/4 {
				z[i] = -v
			}
		}
	})
	grow := func(_ context.Context, s *krylov.State) error {
		for i := range s.R {
			s.R[i] *= 1e3
		}
		return nil
	}
	for _, test := range []struct {
		name, matrix string
		method       krylov.Method
		m            krylov.Operator
		observe      func(context.Context, *krylov.State) error
		want         string
	}{
		{"indefinite preconditioner", "poisson3d-20.mtx.gz", krylov.CG, negative, nil, "r·M⁻¹r"},
		{"indefinite matrix", "petersen.mtx", krylov.CG, nil, nil, "expected a positive definite matrix"}, // eigenvalues 3, 1, -2
		{"skew-symmetric", "skew-6.mtx", krylov.BiCGStab, nil, nil, "bicgstab: the length of a step is 0 in iteration 1, expected another"},
		{"cg diverges", "poisson3d-20.mtx.gz", krylov.CG, nil, grow, "it diverges"},
		{"bicgstab diverges", "convection-64.mtx.gz", krylov.BiCGStab, nil, grow, "it diverges"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sys, x := system(t, test.matrix)
			clear(x)
			sys.M = test.m
			res, err := test.method(context.Background(), sys, x, krylov.Options{Tol: 1e-8, MaxIter: 5000, Observe: test.observe})
			var breakdown *krylov.BreakdownError
			require.ErrorAs(t, err, &breakdown)
			assert.ErrorContains(t, err, test.want)
			assert.Less(t, res.Iterations, 20)
			assert.False(t, res.Converged)
		})
	}
}

// A singular matrix is told as such, or the method ends without convergence: it never continues
// with an iterate that is not finite, as a fault makes it.
func TestSingular(t *testing.T) {
	for _, c := range []struct {
		method krylov.Method
		want   string
	}{
		{krylov.GMRES, "gmres: the last pivot is 0 in iteration 1, expected another: the matrix is singular, or the preconditioner"},
		{krylov.BiCGStab, "bicgstab: the length of a step is 0 in iteration 1, expected another: the matrix is singular, or has eigenvalues on both sides of 0; try gmres"},
	} {
		require.EqualError(t, staysFinite(t, c.method, [][]float64{{0, 1}, {0, 0}}), c.want)
		for seed := range uint64(100) {
			rng := rand.New(rand.NewPCG(seed, 0))
			n := 3 + rng.IntN(9)
			a, upper := make([][]float64, n), make([][]float64, n)
			for i := range n {
				a[i], upper[i] = make([]float64, n), make([]float64, n)
				for j := range n {
					a[i][j] = float64(rng.IntN(3) / 2) // a graph
				}
				for j := i + 1; j < n; j++ {
					upper[i][j] = 1 + float64(rng.IntN(3))
				}
			}
			_ = staysFinite(t, c.method, a) // some are regular
			_ = staysFinite(t, c.method, upper)
		}
	}
}

// staysFinite returns the error of a method for a dense matrix. All iterates have to be finite.
func staysFinite(t *testing.T, method krylov.Method, a [][]float64) error {
	n := len(a)
	sys := krylov.System{Space: krylov.Alone{}, B: make([]float64, n), A: krylov.OperatorFunc(func(_ context.Context, y, x []float64) {
		for i := range y {
			y[i] = 0
			for j, v := range a[i] {
				y[i] += v * x[j]
			}
		}
	})}
	x, now := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = math.Sin(float64(i + 1))
	}
	sys.A.Apply(t.Context(), sys.B, x)
	clear(x)
	infinite := func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }
	res, err := method(t.Context(), sys, x, krylov.Options{Tol: 1e-8, MaxIter: 300, Observe: func(ctx context.Context, s *krylov.State) error {
		s.Current(ctx, now, make([]float64, n))
		require.False(t, slices.ContainsFunc(now, infinite), "%v", now)
		return nil
	}})
	if err != nil {
		require.ErrorAs(t, err, new(*krylov.BreakdownError))
		require.False(t, res.Converged)
	}
	require.False(t, slices.ContainsFunc(x, infinite), "%v", x)
	return err
}

// In a cycle this long one pass of Gram-Schmidt does not give an
// orthogonal basis: the residual of the recursion would not be the true one.
func TestSecondPass(t *testing.T) {
	const n = 300
	d, sys := make([]float64, n), krylov.System{Space: krylov.Alone{}, B: make([]float64, n)}
	for i := range d {
		d[i] = math.Pow(10, 2*float64(i)/n)
		sys.B[i] = 1
	}
	sys.A = krylov.OperatorFunc(func(_ context.Context, y, x []float64) {
		for i, v := range x {
			y[i] = d[i] * v
		}
	})
	x, r := make([]float64, n), make([]float64, n)
	worst := 0.0
	_, err := krylov.GMRES(context.Background(), sys, make([]float64, n), krylov.Options{Tol: 1e-14, MaxIter: 120, Restart: 120, Observe: func(ctx context.Context, s *krylov.State) error {
		s.Current(ctx, x, r)
		worst = max(worst, math.Abs(s.Residual/math.Sqrt(squares(r)/n)-1))
		return nil
	}})
	require.NoError(t, err)
	require.Less(t, worst, 1e-4)
}
