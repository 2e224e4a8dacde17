package main

import (
	"context"
	"math"

	"github.com/mpicx/go-mpicx/mpicx"
)

// A lanczos is the state of Lanczos's algorithm between two iterations, all of which must survive.
// Each iteration adds a column to a tridiagonal matrix. Its extreme eigenvalues converge to those
// of the Hamiltonian.
type lanczos struct {
	v, previous []float64 // this rank's elements of the last two Lanczos vectors
	alpha, beta []float64 // the tridiagonal matrix: its diagonal; its off-diagonal, whose last element is not used yet
	w           []float64 // room for the next vector
}

// fit makes room for that many rows.
func (l *lanczos) fit(rows int) {
	for _, x := range []*[]float64{&l.v, &l.previous, &l.w} {
		if len(*x) != rows {
			*x = make([]float64, rows)
		}
	}
}

// begin makes the first vector, which depends only on the seed.
func (l *lanczos) begin(ctx context.Context, s sheet, a *product) error {
	l.fit(a.rows)
	first := firstRow(s.sites(), a.comm.Size(), a.comm.Rank())
	for i := range l.v {
		l.v[i] = random(^s.Seed, first+i)
	}
	clear(l.previous)
	l.alpha, l.beta = l.alpha[:0], l.beta[:0]
	square, err := a.dot(ctx, l.v, l.v)
	scale(l.v, l.v, 1/math.Sqrt(square))
	return err
}

// step does one iteration. It returns false if there is none: the vectors so far span the whole
// Krylov space of the first one. After an error, l is in the middle of an iteration.
func (l *lanczos) step(ctx context.Context, a *product) (more bool, err error) {
	if err := a.multiply(ctx, l.w, l.v); err != nil {
		return false, err
	}
	alpha, err := a.dot(ctx, l.w, l.v)
	if err != nil {
		return false, err
	}
	beta := 0.0
	if j := len(l.beta); j > 0 {
		beta = l.beta[j-1]
	}
	v, previous, w := l.v, l.previous[:len(l.v)], l.w[:len(l.v)]
	square := 0.0
	for i := range v {
		w[i] -= alpha*v[i] + beta*previous[i]
		square += w[i] * w[i]
	}
	if square, err = a.sum(ctx, square); err != nil {
		return false, err
	}
	next := math.Sqrt(square)
	l.alpha, l.beta = append(l.alpha, alpha), append(l.beta, next)
	if next <= 1e-14*(math.Abs(alpha)+beta) {
		return false, nil
	}
	scale(l.w, l.w, 1/next)
	l.previous, l.v, l.w = l.v, l.w, l.previous
	return true, nil
}

func scale(y, x []float64, by float64) {
	for i := range y {
		y[i] = by * x[i]
	}
}

// dot returns the scalar product of two vectors that are divided among the ranks.
func (a *product) dot(ctx context.Context, x, y []float64) (float64, error) {
	sum := 0.0
	for i := range x {
		sum += x[i] * y[i]
	}
	return a.sum(ctx, sum)
}

// sum returns the sum of all ranks' numbers, the same at all ranks.
func (a *product) sum(ctx context.Context, x float64) (float64, error) {
	total := []float64{0}
	err := mpicx.Allreduce(a.comm, []float64{x}, total, mpicx.Sum).Wait(ctx)
	return total[0], err
}
