package krylov

import "context"

// The loops below compute four sums separately, because an addition takes longer than the processor
// needs to begin the next one. Operations of an iteration on the same vectors are done in one pass.

// dot returns this rank's part of x·y.
func dot(x, y []float64) float64 {
	var s0, s1, s2, s3 float64
	y = y[:len(x)]
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// dotNorm returns this rank's parts of x·y and y·y.
func dotNorm(x, y []float64) (xy, yy float64) {
	var s0, s1, t0, t1 float64
	y = y[:len(x)]
	for len(x) >= 2 && len(y) >= 2 {
		a, b := y[0], y[1]
		s0 += x[0] * a
		s1 += x[1] * b
		t0 += a * a
		t1 += b * b
		x, y = x[2:], y[2:]
	}
	for i, v := range y {
		s0 += x[i] * v
		t0 += v * v
	}
	return s0 + s1, t0 + t1
}

// axpy adds a·x to y.
func axpy(y []float64, a float64, x []float64) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * x[i]
	}
}

// axpyNorm adds a·x to y, and returns this rank's part of y·y.
func axpyNorm(y []float64, a float64, x []float64) float64 {
	var s0, s1 float64
	x = x[:len(y)]
	for len(y) >= 2 && len(x) >= 2 {
		u, v := y[0]+a*x[0], y[1]+a*x[1]
		y[0], y[1] = u, v
		s0 += u * u
		s1 += v * v
		x, y = x[2:], y[2:]
	}
	for i := range y {
		y[i] += a * x[i]
		s0 += y[i] * y[i]
	}
	return s0 + s1
}

// xpby sets y to x + b·y.
func xpby(y, x []float64, b float64) {
	x = x[:len(y)]
	for i := range y {
		y[i] = x[i] + b*y[i]
	}
}

func scale(x []float64, a float64) {
	for i := range x {
		x[i] *= a
	}
}

// block is the number of elements of all vectors that are used together: few enough for a cache,
// and enough for the processor to prefetch them.
const block = 2048

// dotAll stores this rank's parts of v·w, for each v of the basis, in parts, and then that of w·w.
func dotAll(parts []float64, basis [][]float64, w []float64) {
	parts = parts[:len(basis)+1]
	clear(parts)
	for lo := 0; lo < len(w); lo += block {
		b := w[lo:min(lo+block, len(w))]
		rest := basis
		k := 0
		for ; len(rest) >= 4; rest = rest[4:] {
			s0, s1, s2, s3 := dot4(rest[0][lo:], rest[1][lo:], rest[2][lo:], rest[3][lo:], b)
			parts[k] += s0
			parts[k+1] += s1
			parts[k+2] += s2
			parts[k+3] += s3
			k += 4
		}
		for _, v := range rest {
			parts[k] += dot(v[lo:lo+len(b)], b)
			k++
		}
		parts[k] += dot(b, b)
	}
}

func dot4(v0, v1, v2, v3, w []float64) (s0, s1, s2, s3 float64) {
	v0, v1, v2, v3 = v0[:len(w)], v1[:len(w)], v2[:len(w)], v3[:len(w)]
	for i, x := range w {
		s0 += v0[i] * x
		s1 += v1[i] * x
		s2 += v2[i] * x
		s3 += v3[i] * x
	}
	return s0, s1, s2, s3
}

// subtractAll subtracts h[i]·v from w for each v of the basis, and multiplies it by a.
func subtractAll(w []float64, basis [][]float64, h []float64, a float64) {
	for lo := 0; lo < len(w); lo += block {
		b := w[lo:min(lo+block, len(w))]
		rest, h := basis, h[:len(basis)]
		for ; len(rest) >= 4 && len(h) >= 4; rest, h = rest[4:], h[4:] {
			subtract4(b, rest[0][lo:], rest[1][lo:], rest[2][lo:], rest[3][lo:], h[0], h[1], h[2], h[3])
		}
		for i, v := range rest {
			axpy(b, -h[i], v[lo:lo+len(b)])
		}
		if a != 1 {
			scale(b, a)
		}
	}
}

func subtract4(w, v0, v1, v2, v3 []float64, h0, h1, h2, h3 float64) {
	v0, v1, v2, v3 = v0[:len(w)], v1[:len(w)], v2[:len(w)], v3[:len(w)]
	for i := range w {
		w[i] -= (h0*v0[i] + h1*v1[i]) + (h2*v2[i] + h3*v3[i])
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

// dots computes inner products. All that are needed together take one reduction.
type dots struct {
	space       Space
	dotter      Dotter // the space, or nil if it is not one
	x, y        [][]float64
	parts, sums []float64
}

func newDots(space Space, most int) *dots {
	d := &dots{
		space: space, x: make([][]float64, most), y: make([][]float64, most),
		parts: make([]float64, most), sums: make([]float64, most),
	}
	d.dotter, _ = space.(Dotter)
	return d
}

func (d *dots) one(ctx context.Context, x, y []float64) float64 {
	d.product(0, x, y)
	return d.sum(ctx, 1)[0]
}

func (d *dots) two(ctx context.Context, x0, y0, x1, y1 []float64) (float64, float64) {
	d.product(0, x0, y0)
	d.product(1, x1, y1)
	s := d.sum(ctx, 2)
	return s[0], s[1]
}

// product makes product k that of x and y. They may not change before sum.
func (d *dots) product(k int, x, y []float64) {
	var part float64
	if d.dotter == nil {
		part = dot(x, y)
	}
	d.known(k, x, y, part)
}

// known is product for an x and y of which this rank's part is known.
func (d *dots) known(k int, x, y []float64, part float64) {
	d.x[k], d.y[k], d.parts[k] = x, y, part
}

// all makes the first products those of each vector of the basis with w, and the next one that of w
// with itself.
func (d *dots) all(basis [][]float64, w []float64) {
	if d.dotter == nil {
		dotAll(d.parts, basis, w)
		return
	}
	for i, v := range basis {
		d.product(i, v, w)
	}
	d.product(len(basis), w, w)
}

// sum returns the first n products.
func (d *dots) sum(ctx context.Context, n int) []float64 {
	if d.dotter != nil {
		d.dotter.Dot(ctx, d.sums[:n], d.x[:n], d.y[:n])
	} else {
		d.space.Sum(d.parts[:n], d.sums[:n]).MustWait(ctx)
	}
	return d.sums[:n]
}
