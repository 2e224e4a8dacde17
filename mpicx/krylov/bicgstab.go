package krylov

import (
	"context"
	"math"
)

// BiCGStab is the stabilized method of biconjugate gradients, for any regular
// matrix, preconditioned from the right (van der Vorst, SIAM J. Sci. Stat.
// Comput. 13, 1992). An iteration has two products and three reductions. When
// the shadow residual has become orthogonal to the residual, it begins anew from
// where it is.
func BiCGStab(ctx context.Context, sys System, x []float64, opt Options) (Result, error) {
	w := vectors(8, len(x))
	r, p, v, t, shadow, phatBuf, shatBuf := w[0], w[1], w[2], w[3], w[4], w[5], w[6]
	d := newDots(sys.Space, 3)

	normB := math.Sqrt(d.one(ctx, sys.B, sys.B))
	var rho, rr float64
	if opt.From != nil {
		scalars := make([]float64, 2)
		opt.From.load(x, scalars, r, p, shadow)
		rho, rr = scalars[0], scalars[1]
	} else {
		sys.residual(ctx, r, x)
		copy(p, r)
		copy(shadow, r)
		rr = d.one(ctx, r, r)
		rho = rr
	}

	s := &State{X: x, R: r, P: p, Residual: relative(math.Sqrt(rr), normB)}
	s.current = func(_ context.Context, xNow, rNow []float64) { copy(xNow, x); copy(rNow, r) }
	s.save = func(_ context.Context, to *Snapshot) { to.store(x, []float64{rho, rr}, r, p, shadow) }
	for !(math.Sqrt(rr) <= opt.Tol*normB) && s.Iter < opt.MaxIter {
		phat := sys.precondition(ctx, phatBuf, p)
		sys.A.Apply(ctx, v, phat)
		alpha := rho / d.one(ctx, shadow, v)
		if math.IsInf(alpha, 0) {
			alpha = 0 // shadow ⟂ v: take the second half of the step alone
		}
		axpy(x, alpha, phat)
		axpy(r, -alpha, v) // r is the method's s here

		shat := sys.precondition(ctx, shatBuf, r)
		sys.A.Apply(ctx, t, shat)
		tr, tt := d.two(ctx, t, r, t, t)
		omega := tr / tt
		if tt == 0 {
			omega = 0 // r = 0: solved in the first half
		}
		axpy(x, omega, shat)
		axpy(r, -omega, t)

		rhoOld := rho
		d.parts[0], d.parts[1], d.parts[2] = dot(shadow, r), dot(r, r), dot(shadow, shadow)
		sums := d.sum(ctx, 3)
		rho, rr = sums[0], sums[1]
		if math.Abs(rho) <= epsilon*math.Sqrt(rr*sums[2]) || omega == 0 {
			copy(shadow, r)
			copy(p, r)
			rho = rr
		} else {
			beta := rho / rhoOld * alpha / omega
			for i := range p {
				p[i] = r[i] + beta*(p[i]-omega*v[i])
			}
		}

		s.Iter++
		s.Residual = relative(math.Sqrt(rr), normB)
		if err := opt.observe(ctx, s); err != nil {
			return Result{s.Iter, s.Residual, false}, err
		}
	}
	return Result{s.Iter, s.Residual, math.Sqrt(rr) <= opt.Tol*normB}, nil
}

// epsilon is the distance from 1 to the next float64.
const epsilon = 0x1p-52
