package krylov

import (
	"context"
	"math"
)

// GMRES is the generalized minimal residual method, for any regular matrix, preconditioned from the
// right, so that its residuals are those of the system (Saad, Iterative Methods for Sparse Linear
// Systems, 2nd ed., algorithm 9.5). It begins a new cycle every Options.Restart iterations.
//
// The basis is orthogonalized by classical Gram-Schmidt, which takes one reduction an iteration,
// however long the basis, and once more when that does not do: see cycle.orthogonalize.
func GMRES(ctx context.Context, sys System, x []float64, opt Options) (Result, error) {
	m := opt.Restart
	if m <= 0 {
		m = 30
	}
	c := newCycle(sys, x, m)
	normB := math.Sqrt(c.dots.one(ctx, sys.B, sys.B))
	if opt.From != nil {
		opt.From.load(x, nil)
	}

	s := &State{X: x, method: "gmres", opt: opt, normB: normB, current: c.current}
	s.save = func(ctx context.Context, to *Snapshot) {
		c.current(ctx, c.xNow, c.rNow)
		to.store(c.xNow, nil)
	}
	for {
		s.residual(c.begin(ctx)) // the recursion's never grows
		if !s.continues() {
			return s.end()
		}
		for more := true; more && s.continues(); {
			var rest float64
			if rest, more = c.extend(ctx); rest < 0 { // the iterate is that of the vectors before
				c.current(ctx, x, nil)
				return s.broken("the last pivot", c.pivot, "another: the matrix is singular, or the preconditioner")
			}
			s.P = c.v[c.j]
			s.iterated(ctx, rest)
		}
		if s.err != nil {
			return s.end()
		}
		c.current(ctx, x, nil)
	}
}

// cycle is GMRES between two restarts: A·M⁻¹·V = V·H, where V is orthonormal and H is stored as
// Q·R, with Q in Givens rotations.
type cycle struct {
	sys  System
	x    []float64 // the iterate at the beginning
	dots *dots

	j        int         // number of columns of R so far
	v        [][]float64 // V: j+1 vectors
	h        [][]float64 // R by columns
	cos, sin []float64
	pivot    float64   // the last element of R's diagonal
	g        []float64 // Qᵀ·β·e₁; the magnitude of its last element is the norm of the residual

	y, t       []float64 // coefficients
	z          []float64
	xNow, rNow []float64
}

func newCycle(sys System, x []float64, m int) *cycle {
	n := len(x)
	w := vectors(m+4, n)
	return &cycle{
		sys: sys, x: x, dots: newDots(sys.Space, m+3),
		v: w[:m+1], z: w[m+1], xNow: w[m+2], rNow: w[m+3],
		h: vectors(m, m+1), cos: make([]float64, m), sin: make([]float64, m),
		g: make([]float64, m+1), y: make([]float64, m+1), t: make([]float64, m+1),
	}
}

// begin starts from x and returns the norm of the residual.
func (c *cycle) begin(ctx context.Context) float64 {
	r := c.v[0]
	c.sys.residual(ctx, r, c.x)
	beta := math.Sqrt(c.dots.one(ctx, r, r))
	c.j = 0
	c.g[0] = beta
	scale(r, 1/beta)
	return beta
}

// extend adds a vector to the basis. It returns the norm of the residual, and
// whether the basis can be extended further. If A·M⁻¹ is singular on the basis, the
// norm is negative, and nothing is added.
func (c *cycle) extend(ctx context.Context) (rest float64, more bool) {
	j := c.j
	h, w := c.h[j], c.v[j+1]
	c.sys.A.Apply(ctx, w, c.sys.precondition(ctx, c.z, c.v[j]))

	norm := c.orthogonalize(ctx, h, w)
	invariant := norm == 0 // if so, this cycle solves the system
	h[j+1] = norm

	for i := range j {
		h[i], h[i+1] = c.cos[i]*h[i]+c.sin[i]*h[i+1], c.cos[i]*h[i+1]-c.sin[i]*h[i]
	}
	c.pivot = math.Hypot(h[j], norm)
	if isRounding(c.pivot*c.pivot, dot(h[:j+2], h[:j+2])) {
		return -1, false
	}
	c.cos[j], c.sin[j] = h[j]/c.pivot, norm/c.pivot
	h[j], h[j+1] = c.cos[j]*h[j]+c.sin[j]*norm, 0
	c.g[j], c.g[j+1] = c.cos[j]*c.g[j], -c.sin[j]*c.g[j]
	c.j++
	return math.Abs(c.g[c.j]), !invariant && c.j < len(c.h)
}

// orthogonalize subtracts from w its components in the basis, stores them in h,
// normalizes w, and returns its norm, or 0 if nothing but rounding is left of it.
//
// One pass leaves components of the order of ε·‖w before‖/‖w after‖. The errors of the basis itself
// are amplified by the same factor from vector to vector. There is therefore a second pass if much
// of w has been subtracted, and if the newest vector of the basis is no longer orthogonal to the
// first, where loss of orthogonality shows first.
func (c *cycle) orthogonalize(ctx context.Context, h, w []float64) float64 {
	const (
		muchGone   = 1e-2  // of w·w
		orthogonal = 1e-12 // accepted error of the recursion's residual
	)
	clear(h)
	basis := c.v[:c.j+1]
	c.dots.all(basis, w)
	c.dots.known(len(basis)+1, nil, nil, 0)
	if c.j > 0 {
		c.dots.product(len(basis)+1, basis[0], basis[c.j])
	}
	sums := c.dots.sum(ctx, len(basis)+2)
	before, after := sums[len(basis)], subtractSquares(sums, len(basis))
	copy(h, sums[:len(basis)])
	if after > muchGone*before && math.Abs(sums[len(basis)+1]) <= orthogonal {
		norm := math.Sqrt(after)
		subtractAll(w, basis, h, 1/norm)
		return norm
	}
	subtractAll(w, basis, h, 1)
	c.dots.all(basis, w)
	sums = c.dots.sum(ctx, len(basis)+1)
	for i := range basis {
		h[i] += sums[i]
	}
	after = subtractSquares(sums, len(basis)) // by Pythagoras; exact enough, because the second pass changes little
	norm := math.Sqrt(max(after, 0))
	if norm <= epsilon*math.Sqrt(before) {
		clear(w)
		return 0
	}
	subtractAll(w, basis, sums, 1/norm)
	return norm
}

// subtractSquares returns sums[n], a squared norm, minus the squares of the n components before it.
func subtractSquares(sums []float64, n int) float64 {
	left := sums[n]
	for _, s := range sums[:n] {
		left -= s * s
	}
	return left
}

// current stores the iterate in x. If r is not nil, it stores the recursion's residual there: V·Q
// times the last element of g.
func (c *cycle) current(ctx context.Context, x, r []float64) {
	for i := c.j - 1; i >= 0; i-- {
		c.y[i] = c.g[i]
		for k := i + 1; k < c.j; k++ {
			c.y[i] -= c.h[k][i] * c.y[k]
		}
		c.y[i] /= c.h[i][i]
	}
	c.combine(c.rNow, c.y[:c.j])
	step := c.sys.precondition(ctx, c.z, c.rNow)
	for i := range x {
		x[i] = c.x[i] + step[i]
	}
	if r == nil {
		return
	}
	c.t[c.j] = c.g[c.j]
	for i := c.j - 1; i >= 0; i-- {
		c.t[i], c.t[i+1] = -c.sin[i]*c.t[i+1], c.cos[i]*c.t[i+1]
	}
	c.combine(r, c.t[:c.j+1])
}

// combine sets w to the sum of a[i] times vector i of the basis. It changes a.
func (c *cycle) combine(w, a []float64) {
	clear(w)
	scale(a, -1)
	subtractAll(w, c.v[:len(a)], a, 1)
}
