package krylov

import (
	"context"
	"math"
)

// CG is the method of conjugate gradients, for matrices and preconditioners that
// are symmetric and positive definite (Saad, Iterative Methods for Sparse Linear
// Systems, 2nd ed., algorithm 9.1). An iteration has one product and two
// reductions.
func CG(ctx context.Context, sys System, x []float64, opt Options) (Result, error) {
	v := vectors(4, len(x))
	r, p, q, zbuf := v[0], v[1], v[2], v[3]
	d := newDots(sys.Space, 2)

	normB := math.Sqrt(d.one(ctx, sys.B, sys.B))
	var rz, rr float64
	if opt.From != nil {
		scalars := make([]float64, 2)
		opt.From.load(x, scalars, r, p)
		rz, rr = scalars[0], scalars[1]
	} else {
		sys.residual(ctx, r, x)
		z := sys.precondition(ctx, zbuf, r)
		copy(p, z)
		rz, rr = d.two(ctx, r, z, r, r)
	}

	s := &State{X: x, R: r, P: p, Residual: relative(math.Sqrt(rr), normB)}
	s.current = func(_ context.Context, xNow, rNow []float64) { copy(xNow, x); copy(rNow, r) }
	s.save = func(_ context.Context, to *Snapshot) { to.store(x, []float64{rz, rr}, r, p) }
	for !(math.Sqrt(rr) <= opt.Tol*normB) && s.Iter < opt.MaxIter {
		sys.A.Apply(ctx, q, p)
		pq := d.one(ctx, p, q)
		if pq <= 0 {
			return Result{s.Iter, s.Residual, false},
				&BreakdownError{"cg", s.Iter + 1, "p·Ap", pq, "a positive definite matrix"}
		}
		alpha := rz / pq
		axpy(x, alpha, p)
		axpy(r, -alpha, q)

		z := sys.precondition(ctx, zbuf, r)
		rzOld := rz
		rz, rr = d.two(ctx, r, z, r, r)
		beta := rz / rzOld
		for i := range p {
			p[i] = z[i] + beta*p[i]
		}

		s.Iter++
		s.Residual = relative(math.Sqrt(rr), normB)
		if err := opt.observe(ctx, s); err != nil {
			return Result{s.Iter, s.Residual, false}, err
		}
	}
	return Result{s.Iter, s.Residual, math.Sqrt(rr) <= opt.Tol*normB}, nil
}
