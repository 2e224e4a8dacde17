package krylov

import (
	"context"
	"math"
)

// GMRES is the generalized minimal residual method, for any regular matrix,
// preconditioned from the right, so that its residuals are those of the system
// (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 9.5).
// It begins a new cycle every Options.Restart iterations.
//
// The basis is orthogonalized by classical Gram-Schmidt, twice: that is as good
// as the modified one, and takes two reductions an iteration, however long the
// basis.
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

	s := &State{X: x, current: c.current}
	s.save = func(ctx context.Context, to *Snapshot) {
		c.current(ctx, c.xNow, c.rNow)
		to.store(c.xNow, nil)
	}
	for {
		beta := c.begin(ctx)
		s.Residual = relative(beta, normB)
		if beta <= opt.Tol*normB || s.Iter >= opt.MaxIter {
			return Result{s.Iter, s.Residual, beta <= opt.Tol*normB}, nil
		}
		for more := true; more; {
			var rest float64
			rest, more = c.extend(ctx)
			s.Iter++
			s.Residual = relative(rest, normB)
			s.P = c.v[c.j]
			if err := opt.observe(ctx, s); err != nil {
				return Result{s.Iter, s.Residual, false}, err
			}
			more = more && !(rest <= opt.Tol*normB) && s.Iter < opt.MaxIter
		}
		c.current(ctx, x, nil)
	}
}

// cycle is GMRES between two restarts: A·M⁻¹·V = V·H, where V is orthonormal and
// H is kept as Q·R, with Q in Givens rotations.
type cycle struct {
	sys  System
	x    []float64 // the iterate at the beginning
	dots *dots

	j        int         // columns of R so far
	v        [][]float64 // j+1 of them
	h        [][]float64 // R by columns
	cos, sin []float64
	g        []float64 // Qᵀ·β·e₁: what is left in its last element is the residual's norm

	y, t       []float64 // coefficients
	z          []float64
	xNow, rNow []float64
}

func newCycle(sys System, x []float64, m int) *cycle {
	n := len(x)
	w := vectors(m+4, n)
	return &cycle{
		sys: sys, x: x, dots: newDots(sys.Space, m+2),
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
// whether the basis can be extended further.
func (c *cycle) extend(ctx context.Context) (rest float64, more bool) {
	j := c.j
	h, w := c.h[j], c.v[j+1]
	c.sys.A.Apply(ctx, w, c.sys.precondition(ctx, c.z, c.v[j]))

	before, after := c.orthogonalize(ctx, h, w)
	norm := math.Sqrt(max(after, 0))
	invariant := norm <= epsilon*math.Sqrt(before) // then this cycle solves the system
	if invariant {
		norm = 0
		clear(w)
	} else {
		scale(w, 1/norm)
	}
	h[j+1] = norm

	for i := range j {
		h[i], h[i+1] = c.cos[i]*h[i]+c.sin[i]*h[i+1], c.cos[i]*h[i+1]-c.sin[i]*h[i]
	}
	c.cos[j], c.sin[j] = 1, 0
	if length := math.Hypot(h[j], norm); length != 0 {
		c.cos[j], c.sin[j] = h[j]/length, norm/length
	}
	h[j], h[j+1] = c.cos[j]*h[j]+c.sin[j]*norm, 0
	c.g[j], c.g[j+1] = c.cos[j]*c.g[j], -c.sin[j]*c.g[j]
	c.j++
	return math.Abs(c.g[c.j]), !invariant && c.j < len(c.h)
}

// orthogonalize subtracts from w its components in the basis, stores them in h,
// and returns w·w before and after.
func (c *cycle) orthogonalize(ctx context.Context, h, w []float64) (before, after float64) {
	clear(h)
	basis := c.v[:c.j+1]
	for pass := range 2 {
		for i, v := range basis {
			c.dots.parts[i] = dot(v, w)
		}
		c.dots.parts[len(basis)] = dot(w, w)
		sums := c.dots.sum(ctx, len(basis)+1)
		ww := sums[len(basis)]
		if pass == 0 {
			before = ww
		}
		after = ww // Pythagoras: the second pass changes little, so nothing is lost
		for i, v := range basis {
			h[i] += sums[i]
			after -= sums[i] * sums[i]
			axpy(w, -sums[i], v)
		}
	}
	return before, after
}

// current stores the iterate in x, and what the recursion has for its residual
// in r, if not nil: V·Q·(the last element of g).
func (c *cycle) current(ctx context.Context, x, r []float64) {
	for i := c.j - 1; i >= 0; i-- {
		c.y[i] = c.g[i]
		for k := i + 1; k < c.j; k++ {
			c.y[i] -= c.h[k][i] * c.y[k]
		}
		c.y[i] /= c.h[i][i]
	}
	step := c.rNow
	clear(step)
	for i, y := range c.y[:c.j] {
		axpy(step, y, c.v[i])
	}
	step = c.sys.precondition(ctx, c.z, step)
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
	clear(r)
	for i, t := range c.t[:c.j+1] {
		axpy(r, t, c.v[i])
	}
}

func scale(x []float64, a float64) {
	for i := range x {
		x[i] *= a
	}
}
