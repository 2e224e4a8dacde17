package krylov

import (
	"context"
	"math"
)

// BiCGStab is the stabilized method of biconjugate gradients, for any regular
// matrix, preconditioned from the right (van der Vorst, SIAM J. Sci. Stat.
// Comput. 13, 1992). An iteration has two products and three reductions. When
// the shadow residual has become orthogonal to the residual, it begins anew from
// where it is. It breaks down if neither half of a step leads anywhere, as with
// skew-symmetric matrices.
func BiCGStab(ctx context.Context, sys System, x []float64, opt Options) (Result, error) {
	w := vectors(7, len(x))
	r, p, v, t, shadow, phatBuf, shatBuf := w[0], w[1], w[2], w[3], w[4], w[5], w[6]
	d := newDots(sys.Space, 3)

	normB := math.Sqrt(d.one(ctx, dot(sys.B, sys.B)))
	var rho, rr, shadow2 float64 // shadow·r, r·r, shadow·shadow
	if opt.From != nil {
		scalars := make([]float64, 3)
		opt.From.load(x, scalars, r, p, shadow)
		rho, rr, shadow2 = scalars[0], scalars[1], scalars[2]
	} else {
		sys.residual(ctx, r, x)
		copy(p, r)
		copy(shadow, r)
		rr = d.one(ctx, dot(r, r))
		rho, shadow2 = rr, rr
	}

	s := &State{X: x, R: r, P: p, Residual: relative(math.Sqrt(rr), normB)}
	s.current = func(_ context.Context, xNow, rNow []float64) { copy(xNow, x); copy(rNow, r) }
	s.save = func(_ context.Context, to *Snapshot) { to.store(x, []float64{rho, rr, shadow2}, r, p, shadow) }
	limit := opt.limit(s.Residual)
	for !(math.Sqrt(rr) <= opt.Tol*normB) && s.Iter < opt.MaxIter {
		phat := sys.precondition(ctx, phatBuf, p)
		sys.A.Apply(ctx, v, phat)
		d.parts[0], d.parts[1] = dotNorm(shadow, v)
		sums := d.sum(ctx, 2)
		sv, vv := sums[0], sums[1]
		alpha := rho / sv
		if math.Abs(sv) <= epsilon*math.Sqrt(shadow2*vv) {
			alpha = 0 // shadow ⟂ v: take the second half of the step alone
		}
		ss := axpyNorm(r, -alpha, v) // r is the method's s here

		shat := sys.precondition(ctx, shatBuf, r)
		sys.A.Apply(ctx, t, shat)
		d.parts[2] = ss
		d.parts[0], d.parts[1] = dotNorm(r, t)
		sums = d.sum(ctx, 3)
		tr, tt := sums[0], sums[1]
		omega := tr / tt
		if math.Abs(tr) <= epsilon*math.Sqrt(tt*sums[2]) {
			omega = 0 // r ⟂ A·r, or r = 0: solved in the first half
		}
		if alpha == 0 && omega == 0 {
			return s.broken("bicgstab", "the length of a step", 0, "another: the matrix has eigenvalues on both sides of 0; use gmres")
		}
		rhoOld := rho
		rho, rr = step(x, r, alpha, phat, omega, shat, t, shadow)
		rho, rr = d.two(ctx, rho, rr)
		if math.Abs(rho) <= epsilon*math.Sqrt(rr*shadow2) || omega == 0 {
			copy(shadow, r)
			copy(p, r)
			rho, shadow2 = rr, rr
		} else {
			beta := rho / rhoOld * alpha / omega
			for i, vi := range v {
				p[i] = r[i] + beta*(p[i]-omega*vi)
			}
		}

		s.Iter++
		s.Residual = relative(math.Sqrt(rr), normB)
		if err := opt.observe(ctx, s); err != nil {
			return Result{s.Iter, s.Residual, false}, err
		}
		if s.Residual > limit {
			return s.diverged("bicgstab", limit)
		}
	}
	return Result{s.Iter, s.Residual, math.Sqrt(rr) <= opt.Tol*normB}, nil
}

// step adds alpha·phat + omega·shat to x, subtracts omega·t from r, and returns this
// rank's parts of shadow·r and r·r.
func step(x, r []float64, alpha float64, phat []float64, omega float64, shat, t, shadow []float64) (rho, rr float64) {
	r, phat, shat, t, shadow = r[:len(x)], phat[:len(x)], shat[:len(x)], t[:len(x)], shadow[:len(x)]
	for i := range x {
		// r itself is phat or shat, if there is no preconditioner.
		x[i] += alpha*phat[i] + omega*shat[i]
		e := r[i] - omega*t[i]
		r[i] = e
		rho += shadow[i] * e
		rr += e * e
	}
	return rho, rr
}

// epsilon is the distance from 1 to the next float64.
const epsilon = 0x1p-52
