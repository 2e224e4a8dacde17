package krylov

import (
	"context"
	"math"
)

// BiCGStab is the stabilized method of biconjugate gradients, for any regular matrix,
// preconditioned from the right (van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992). An iteration
// has two products and three reductions. When the shadow residual has become orthogonal to the
// residual, it begins anew from where it is. It breaks down if neither half of a step leads
// anywhere, as with skew-symmetric matrices and some singular ones.
func BiCGStab(ctx context.Context, sys System, x []float64, opt Options) (Result, error) {
	w := vectors(7, len(x))
	r, p, v, t, shadow, phatBuf, shatBuf := w[0], w[1], w[2], w[3], w[4], w[5], w[6]
	d := newDots(sys.Space, 3)

	normB := math.Sqrt(d.one(ctx, sys.B, sys.B))
	var rho, rr, shadow2 float64 // shadow·r, r·r, shadow·shadow
	if opt.From != nil {
		opt.From.load(x, []*float64{&rho, &rr, &shadow2}, r, p, shadow)
	} else {
		sys.residual(ctx, r, x)
		copy(p, r)
		copy(shadow, r)
		rr = d.one(ctx, r, r)
		rho, shadow2 = rr, rr
	}

	s := &State{X: x, R: r, P: p, method: "bicgstab", opt: opt, normB: normB}
	s.save = func(_ context.Context, to *Snapshot) { to.store(x, []float64{rho, rr, shadow2}, r, p, shadow) }
	pp, normA2 := dot(p, p), 0.0 // this rank's part of p·p, and a lower bound of ‖A·M⁻¹‖²
	s.residual(math.Sqrt(rr))
	for s.continues() {
		phat := sys.precondition(ctx, phatBuf, p)
		sys.A.Apply(ctx, v, phat)
		sv, vv := dotNorm(shadow, v)
		d.known(0, shadow, v, sv)
		d.known(1, v, v, vv)
		d.known(2, p, p, pp)
		sums := d.sum(ctx, 3)
		sv, vv = sums[0], sums[1]
		alpha := rho / sv
		normA2 = max(normA2, vv/sums[2])
		if math.Abs(sv) <= epsilon*math.Sqrt(shadow2*vv) || isRounding(vv, normA2*sums[2]) {
			alpha = 0 // shadow ⟂ v, or v = 0: take the second half of the step alone
		}
		ss := axpyNorm(r, -alpha, v) // r is the method's s here

		shat := sys.precondition(ctx, shatBuf, r)
		sys.A.Apply(ctx, t, shat)
		tr, tt := dotNorm(r, t)
		d.known(0, r, t, tr)
		d.known(1, t, t, tt)
		d.known(2, r, r, ss)
		sums = d.sum(ctx, 3)
		tr, tt = sums[0], sums[1]
		omega := tr / tt
		if math.Abs(tr) <= epsilon*math.Sqrt(tt*sums[2]) || isRounding(tt, normA2*sums[2]) {
			omega = 0 // r ⟂ A·r, or r = 0: solved in the first half
		}
		if alpha == 0 && omega == 0 {
			return s.broken("the length of a step", 0, "another: the matrix is singular, or has eigenvalues on both sides of 0; try gmres")
		}
		rhoOld := rho
		rho, rr = step(x, r, alpha, phat, omega, shat, t, shadow)
		pp = rr
		d.known(0, shadow, r, rho)
		d.known(1, r, r, rr)
		sums = d.sum(ctx, 2)
		rho, rr = sums[0], sums[1]
		if math.Abs(rho) <= epsilon*math.Sqrt(rr*shadow2) || omega == 0 {
			copy(shadow, r)
			copy(p, r)
			rho, shadow2 = rr, rr
		} else {
			beta := rho / rhoOld * alpha / omega
			pp = 0
			for i, vi := range v {
				p[i] = r[i] + beta*(p[i]-omega*vi)
				pp += p[i] * p[i]
			}
		}

		s.iterated(ctx, math.Sqrt(rr))
	}
	return s.end()
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
