package main

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// dense returns the Hamiltonian as a matrix, and checks that it is symmetric.
func dense(t *testing.T, s sheet) *mat.SymDense {
	t.Helper()
	n := s.sites()
	h := mat.NewDense(n, n, nil)
	for i := range n {
		h.Set(i, i, s.energy(i))
		for k, j := range s.neighbours(i) {
			if j != missing {
				h.Set(i, j, h.At(i, j)+[neighbours]float64{hop1, hop1, hop1, hop2, hop2, hop2, hop2, hop2, hop2, hop3, hop3, hop3}[k])
			}
		}
	}
	require.True(t, mat.Equal(h, h.T()))
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range n {
			sym.SetSym(i, j, h.At(i, j))
		}
	}
	return sym
}

func spectrum(t *testing.T, s sheet) []float64 {
	t.Helper()
	var e mat.EigenSym
	require.True(t, e.Factorize(dense(t, s), false))
	return e.Values(nil)
}

// solveOn returns the lowest eigenvalues that the given number of ranks finds.
func solveOn(t *testing.T, ranks int, s sheet, iterations, count int) (found []float64) {
	t.Helper()
	mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		a := newProduct(s, world)
		l := new(lanczos)
		err := l.begin(ctx, s, a)
		for more := true; err == nil && more && len(l.alpha) < iterations; {
			more, err = l.step(ctx, a)
		}
		if world.Rank() == 0 {
			found = lowest(l.alpha, l.beta, count)
		}
		return err
	})
	return found
}

func TestAPeriodicSheetHasTheClosedForm(t *testing.T) {
	for _, s := range []sheet{{Width: 3, Height: 3}, {Width: 6, Height: 4}, {Width: 5, Height: 7}} {
		require.InDeltaSlice(t, s.bands(), spectrum(t, s), 1e-11)
	}
	s := sheet{Width: 60, Height: 48}
	for i, e := range solveOn(t, 4, s, 300, 3) {
		require.InDelta(t, distinct(s.bands())[i], e, 1e-10)
	}
}

// distinct removes duplicates from increasing numbers.
func distinct(all []float64) (each []float64) {
	for _, x := range all {
		if n := len(each); n == 0 || x-each[n-1] > 1e-9 {
			each = append(each, x)
		}
	}
	return each
}

func TestSmallSheetsHaveTheEigenvaluesOfADenseSolver(t *testing.T) {
	for _, s := range []sheet{
		{Width: 6, Height: 5, Disorder: 2, Seed: 7},
		{Width: 6, Height: 5, Open: true},
		{Width: 1, Height: 1, Open: true},
		{Width: 1, Height: 20, Open: true, Disorder: 1},
		{Width: 9, Height: 7, Open: true, Disorder: 3, Seed: 1},
	} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			want := distinct(spectrum(t, s))
			want = want[:min(len(want), 4)]
			for ranks := 1; ranks <= 7; ranks++ { // also more than there are sites
				require.InDeltaSlice(t, want, solveOn(t, ranks, s, 250, 4), 1e-10, "%d ranks", ranks)
			}
		})
	}
}

// The product is the same to the last bit, for any division of the rows.
func TestAProductDoesNotDependOnTheNumberOfRanks(t *testing.T) {
	s := sheet{Width: 7, Height: 9, Disorder: 1}
	var want []float64
	for _, ranks := range []int{1, 2, 3, 5, 8, 40} {
		got := make([]float64, s.sites())
		mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
			a := newProduct(s, world)
			first := firstRow(s.sites(), ranks, world.Rank())
			x := make([]float64, a.rows)
			for i := range x {
				x[i] = random(3, first+i)
			}
			return a.multiply(ctx, got[first:first+a.rows], x)
		})
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, "%d ranks", ranks)
	}
	x, y := make([]float64, s.sites()), make([]float64, s.sites())
	for i := range x {
		x[i] = random(3, i)
	}
	mat.NewVecDense(len(y), y).MulVec(dense(t, s), mat.NewVecDense(len(x), x))
	require.InDeltaSlice(t, y, want, 1e-12)
}

// Site energies are distributed evenly.
func TestDisorder(t *testing.T) {
	s := sheet{Width: 100, Height: 100, Disorder: 3, Seed: 5}
	sum, square, most := 0.0, 0.0, 0.0
	for i := range s.sites() {
		e := s.energy(i)
		sum, square, most = sum+e, square+e*e, max(most, math.Abs(e))
	}
	n := float64(s.sites())
	require.InDelta(t, 0, sum/n, 0.03)
	require.InDelta(t, 9.0/12, square/n, 0.02)
	require.LessOrEqual(t, most, 1.5)
	require.NotEqual(t, s.energy(3), sheet{Width: 100, Height: 100, Disorder: 3, Seed: 6}.energy(3))
}
