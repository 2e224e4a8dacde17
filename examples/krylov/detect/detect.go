package detect

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// A Finding is a fault that a rank has found in itself. It is an error, and all ranks get its code.
type Finding struct {
	Code int
	Text string
}

func (f *Finding) Error() string  { return f.Text }
func (f *Finding) ErrorCode() int { return f.Code }

// The codes of findings.
const (
	CodeNonFinite = 1 // NaN or infinity
	CodeGap       = 2 // the residual is not the iterate's
	CodeChecksum  = 3 // a basis vector has changed since it was written
	CodeBreakdown = 4 // the method can't continue: see krylov.BreakdownError
)

// A Detector finds faults on its own rank, if possible before other ranks get wrong numbers from
// it. It needs no reduction. It checks three things:
//
// Non-finite values. It inspects all that the rank gives away, which is its parts of sums and the
// vectors whose halo it sends, first.
//
// A checksum of an eighth of the rank's part of the newest basis vector is taken when the iteration
// has written it, and compared when the next iteration reads it. It finds a change of any bit
// there. It does not find wrong arithmetic. The eighths take turns: to check everything in each
// iteration takes as long as a tenth of the iteration.
//
// The gap. Every few iterations the residual of the recursion is compared with b-A·x, at each rank
// for its own part. This finds whatever has come between the two: in x, in r, in all of GMRES's
// basis, or in the arithmetic. It costs a product.
type Detector struct {
	Settings
	b []float64
	a krylov.Operator // checks what it reads

	x, r, y []float64
	maxX    float64 // the largest norm of the rank's part of x so far
	maxR    float64 // the largest norm of all of r so far

	newest []float64
	eighth int // which eighth of newest is checked
	sum    uint64
}

// Settings are the detector's knowledge of the system.
type Settings struct {
	Tol          float64 // the solver's
	First        int     // this rank's first row
	NormA, NormB float64 // the largest sum of magnitudes in a row, and the right-hand side's norm
}

// New returns the detector of a rank.
func New(s Settings) *Detector { return &Detector{Settings: s} }

// Watch returns sys, with the detector checking what the rank gives away.
func (d *Detector) Watch(sys krylov.System) krylov.System {
	sys.Space = watchedSpace{sys.Space}
	sys.A = watchOperator(sys.A, d.give)
	if sys.M != nil {
		sys.M = watchOperator(sys.M, d.read)
	}
	n := len(sys.B)
	d.a, d.b, d.x, d.r, d.y = sys.A, sys.B, make([]float64, n), make([]float64, n), make([]float64, n)
	return sys
}

// Forget is called when the solver starts again.
func (d *Detector) Forget() { d.newest, d.maxX, d.maxR = nil, 0, d.NormB }

// Iteration is called at the end of each iteration. With gap it also compares residuals, which is
// collective.
func (d *Detector) Iteration(ctx context.Context, s *krylov.State, gap bool) error {
	d.maxR = max(d.maxR, s.Residual*d.NormB)
	if gap {
		if err := d.gap(ctx, s); err != nil {
			return err
		}
	}
	d.newest, d.eighth = s.P, s.Iter%eighths
	d.sum = checksum(s.P, d.eighth)
	return nil
}

// gap compares the rank's parts of the recursive and the true residual.
//
// Rounding alone makes them differ by at most about ε·k·(‖A‖·max‖x‖ + max‖r‖) in k iterations
// (Greenbaum, SIAM J. Matrix Anal. Appl. 18, 1997; van der Vorst and Ye, SIAM J. Sci. Comput. 22,
// 2000). This much is granted, and a tenth of the tolerance: with a smaller gap, x can still be a
// solution.
func (d *Detector) gap(ctx context.Context, s *krylov.State) error {
	x, r := s.X, s.R
	if r == nil { // GMRES has them only at the end of a cycle
		x, r = d.x, d.r
		s.Current(ctx, x, r)
	}
	d.a.Apply(ctx, d.y, x)
	var gap, xx float64
	for i, b := range d.b {
		e := b - d.y[i] - r[i]
		gap += e * e
		xx += x[i] * x[i]
	}
	gap = math.Sqrt(gap)
	d.maxX = max(d.maxX, math.Sqrt(xx))
	const epsilon = 0x1p-52
	rounding := epsilon * float64(10+s.Iter) * (d.NormA*d.maxX + d.maxR)
	granted := rounding + d.Tol*d.NormB/10
	if math.IsInf(granted, 0) { // it would grant everything
		return &Finding{CodeGap, fmt.Sprintf("the solution is not finite, or its norm is not: %.2g here", d.maxX)}
	}
	if !(gap <= granted) {
		return &Finding{CodeGap, fmt.Sprintf("the residual is not that of the solution: they differ by %.2g here, expected at most %.2g", gap, granted)}
	}
	return nil
}

func (d *Detector) isNewest(v []float64) bool {
	return len(v) > 0 && len(d.newest) > 0 && &v[0] == &d.newest[0]
}

// read checks a vector that the solver is about to read.
func (d *Detector) read(v []float64) error {
	if d.isNewest(v) {
		if sum := checksum(v, d.eighth); sum != d.sum {
			return &Finding{CodeChecksum, fmt.Sprintf("the newest basis vector is not what was written: checksum %016x, expected %016x", sum, d.sum)}
		}
	}
	return nil
}

// give checks a vector whose halo the solver is about to send to others. The newest basis vector
// was finite when it was written, because the sums that it is made of were.
func (d *Detector) give(v []float64) error {
	if d.isNewest(v) {
		return d.read(v)
	}
	if AllFinite(v) {
		return nil
	}
	i := slices.IndexFunc(v, func(e float64) bool { return !isFinite(e) })
	return &Finding{CodeNonFinite, fmt.Sprintf("row %d of a vector is %g", d.First+i, v[i])}
}

func isFinite(e float64) bool { return e-e == 0 }

// AllFinite reports whether all elements are finite. Their sum is not finite if one of them is not.
// If the sum is not finite, the elements are checked one by one, because it may have overflowed.
func AllFinite(v []float64) bool {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	rest := v
	for ; len(rest) >= 8; rest = rest[8:] {
		s0 += rest[0]
		s1 += rest[1]
		s2 += rest[2]
		s3 += rest[3]
		s4 += rest[4]
		s5 += rest[5]
		s6 += rest[6]
		s7 += rest[7]
	}
	for _, e := range rest {
		s0 += e
	}
	return isFinite(((s0+s1)+(s2+s3))+((s4+s5)+(s6+s7))) || !slices.ContainsFunc(v, func(e float64) bool { return !isFinite(e) })
}

// A vector has this many parts, each with every eighth piece of 64 elements. A checksum is of one
// part.
const (
	eighths = 8
	piece   = 64
)

// checksum returns a number that almost certainly changes with that part of v. It has four
// independent sums, for speed.
func checksum(v []float64, eighth int) uint64 {
	const odd = 0x9e3779b97f4a7c15
	var s0, s1, s2, s3 uint64
	for lo := eighth * piece % max(len(v), 1); lo < len(v); lo += eighths * piece {
		rest := v[lo:min(lo+piece, len(v))]
		for ; len(rest) >= 4; rest = rest[4:] {
			s0 = s0*odd + math.Float64bits(rest[0])
			s1 = s1*odd + math.Float64bits(rest[1])
			s2 = s2*odd + math.Float64bits(rest[2])
			s3 = s3*odd + math.Float64bits(rest[3])
		}
		for _, e := range rest {
			s0 = s0*odd + math.Float64bits(e)
		}
	}
	return ((s0*odd+s1)*odd+s2)*odd + s3
}

// watchOperator returns an operator that first checks its argument.
func watchOperator(a krylov.Operator, look func([]float64) error) krylov.Operator {
	return krylov.OperatorFunc(func(ctx context.Context, y, x []float64) {
		if err := look(x); err != nil {
			panic(future.Thrown{Err: err})
		}
		a.Apply(ctx, y, x)
	})
}

// A watchedSpace checks the rank's parts of sums.
type watchedSpace struct{ krylov.Space }

func (w watchedSpace) Sum(parts, sums []float64) *future.Future[struct{}] {
	for _, p := range parts {
		if math.IsNaN(p) || math.IsInf(p, 0) {
			return future.Failed[struct{}](&Finding{CodeNonFinite, fmt.Sprintf("the rank's part of an inner product is %g", p)})
		}
	}
	return w.Space.Sum(parts, sums)
}
