package krylov

import (
	"context"
	"math"
)

// CG is the method of conjugate gradients, for matrices and preconditioners that are symmetric and
// positive definite (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 9.1). An
// iteration has one product and two reductions.
func CG(ctx context.Context, sys System, x []float64, opt Options) (Result, error) {
	v := vectors(4, len(x))
	r, p, q, zbuf := v[0], v[1], v[2], v[3]
	d := newDots(sys.Space, 2)

	normB := math.Sqrt(d.one(ctx, sys.B, sys.B))
	var rz, rr float64
	if opt.From != nil {
		opt.From.load(x, []*float64{&rz, &rr}, r, p)
	} else {
		sys.residual(ctx, r, x)
		z := sys.precondition(ctx, zbuf, r)
		copy(p, z)
		rz, rr = d.two(ctx, r, z, r, r)
	}

	s := &State{X: x, R: r, P: p, method: "cg", opt: opt, normB: normB}
	s.save = func(_ context.Context, to *Snapshot) { to.store(x, []float64{rz, rr}, r, p) }
	s.residual(math.Sqrt(rr))
	for s.continues() {
		if rz <= 0 {
			return s.broken("r·M⁻¹r", rz, "a positive definite preconditioner")
		}
		sys.A.Apply(ctx, q, p)
		pq := d.one(ctx, p, q)
		if pq <= 0 {
			return s.broken("p·Ap", pq, "a positive definite matrix")
		}
		alpha := rz / pq
		axpy(x, alpha, p)
		d.known(0, r, r, axpyNorm(r, -alpha, q))
		z, rzOld := r, rz
		if sys.M == nil {
			rr = d.sum(ctx, 1)[0]
			rz = rr
		} else {
			z = sys.precondition(ctx, zbuf, r)
			d.product(1, r, z)
			sums := d.sum(ctx, 2)
			rr, rz = sums[0], sums[1]
		}
		xpby(p, z, rz/rzOld)

		s.iterated(ctx, math.Sqrt(rr))
	}
	return s.end()
}
