package krylov

import (
	"context"
	"math"
)

// Interpolate fills in the elements of x that are lost, d, from those that are not, o: it solves
//
//	A_dd·x_d = b_d - A_do·x_o,
//
// so that the residual is 0 in the rows that are lost. This is the linear interpolation of Langou,
// Chen, Bosilca and Dongarra (SIAM J. Sci. Comput. 30, 2007) as Agullo et al. restart Krylov
// methods with it (Numer. Linear Algebra Appl. 23, 2016). If A is symmetric and positive definite,
// no other x_d is nearer to the solution in the norm of A: the error is not larger than it was
// before the loss.
//
// Lost rows of several ranks are solved for together, and all ranks take part,
// those that lost nothing as well. The equation is solved by the given method
// until its residual is at most opt.Tol·‖b‖, b being that of sys.
func Interpolate(ctx context.Context, sys System, x []float64, lost []bool, method Method, opt Options) (Result, error) {
	keep(x, lost, false)
	r := make([]float64, len(x))
	sys.residual(ctx, r, x)
	keep(r, lost, true)
	rr, bb := newDots(sys.Space, 2).two(ctx, r, r, sys.B, sys.B)
	if rr == 0 {
		return Result{Converged: true}, nil
	}
	opt.Tol *= math.Sqrt(bb) / math.Sqrt(rr)

	step := make([]float64, len(x))
	res, err := method(ctx, sys.restrict(r, lost), step, opt)
	axpy(x, 1, step)
	return res, err
}

// restrict returns the system of the rows in d, with the right-hand side b, which is 0 in other
// rows. Vectors keep their length, and are 0 in other rows.
func (sys *System) restrict(b []float64, d []bool) System {
	only := func(a Operator) Operator {
		if a == nil {
			return nil
		}
		return OperatorFunc(func(ctx context.Context, y, x []float64) {
			a.Apply(ctx, y, x)
			keep(y, d, true)
		})
	}
	return System{Space: sys.Space, A: only(sys.A), M: only(sys.M), B: b}
}

// keep sets the elements of x to 0 for which in differs from wanted.
func keep(x []float64, in []bool, wanted bool) {
	for i := range x {
		if in[i] != wanted {
			x[i] = 0
		}
	}
}
