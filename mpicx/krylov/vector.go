package krylov

import "context"

// dot is this rank's part of x·y.
func dot(x, y []float64) float64 {
	var s float64
	y = y[:len(x)]
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

// axpy adds a·x to y.
func axpy(y []float64, a float64, x []float64) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * x[i]
	}
}

// vectors returns count vectors of n elements.
func vectors(count, n int) [][]float64 {
	all := make([]float64, count*n)
	vs := make([][]float64, count)
	for i := range vs {
		vs[i] = all[i*n : (i+1)*n : (i+1)*n]
	}
	return vs
}

// dots computes inner products, those that are needed together in one reduction.
type dots struct {
	space       Space
	parts, sums []float64
}

func newDots(space Space, most int) *dots {
	return &dots{space, make([]float64, most), make([]float64, most)}
}

func (d *dots) one(ctx context.Context, x, y []float64) float64 {
	d.parts[0] = dot(x, y)
	return d.sum(ctx, 1)[0]
}

func (d *dots) two(ctx context.Context, x0, y0, x1, y1 []float64) (float64, float64) {
	d.parts[0], d.parts[1] = dot(x0, y0), dot(x1, y1)
	s := d.sum(ctx, 2)
	return s[0], s[1]
}

// sum adds up the first n parts over all ranks.
func (d *dots) sum(ctx context.Context, n int) []float64 {
	d.space.Sum(d.parts[:n], d.sums[:n]).MustWait(ctx)
	return d.sums[:n]
}
