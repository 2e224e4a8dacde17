package detect

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// A Finding is what a rank finds wrong with itself. An error whose code all ranks get.
type Finding struct {
	Code int
	Text string
}

func (f *Finding) Error() string  { return f.Text }
func (f *Finding) ErrorCode() int { return f.Code }

// The codes of findings.
const (
	CodeNonFinite = 1 // NaN or infinity
	CodeGap       = 2 // the residual is not that of the iterate
	CodeChecksum  = 3 // a basis vector is not what was written
	CodeBreakdown = 4 // the method can't go on: see krylov.BreakdownError
)

// A Detector finds faults on its own rank, before other ranks get wrong numbers
// from it where that is possible. It needs no reduction. It has three means:
//
// Non-finite values. What the rank gives away, its parts of sums and the vectors
// whose halo it sends, is looked at first.
//
// A checksum of an eighth of the newest basis vector, the rank's part, is taken when
// the iteration has written it, and compared when the next one reads it. It sees a
// change of any bit there. It does not see wrong arithmetic. The eighths take turns:
// to look at all of it in each iteration takes as long as a tenth of the iteration.
//
// The gap: every few iterations the residual that the recursion has is compared
// with b-A·x, each rank its own part. That sees whatever has got between the two,
// in x, in r, in all of GMRES's basis, or in the arithmetic. It costs a product.
type Detector struct {
	Settings
	b []float64
	a krylov.Operator // that looks at what it reads

	x, r, y []float64
	maxX    float64 // the largest norm of x, of the rank's part, so far
	maxR    float64 // and of r, of the whole

	newest []float64
	turn   int // which eighth of it is looked at
	sum    uint64
}

// Settings are what a detector knows of the system.
type Settings struct {
	Tol          float64 // the solver's
	First        int     // this rank's first row
	NormA, NormB float64 // the largest sum of magnitudes in a row, and the right-hand side's norm
}

// New returns the detector of a rank.
func New(s Settings) *Detector { return &Detector{Settings: s} }

// Watch returns sys with the detector looking at what the rank gives away.
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

// Forget is called when the solver begins anew.
func (d *Detector) Forget() { d.newest, d.maxX, d.maxR = nil, 0, d.NormB }

// Iteration is called at the end of each iteration. With gap it compares
// residuals: that is collective.
func (d *Detector) Iteration(ctx context.Context, s *krylov.State, gap bool) error {
	d.maxR = max(d.maxR, s.Residual*d.NormB)
	if gap {
		if err := d.gap(ctx, s); err != nil {
			return err
		}
	}
	d.newest, d.turn = s.P, s.Iter%turns
	d.sum = checksum(s.P, d.turn)
	return nil
}

// gap compares the rank's parts of the recursive and the true residual.
//
// Rounding alone drives them apart by no more than about ε·k·(‖A‖·max‖x‖ + max‖r‖)
// in k iterations (Greenbaum, SIAM J. Matrix Anal. Appl. 18, 1997; van der Vorst
// and Ye, SIAM J. Sci. Comput. 22, 2000). That much is granted, and a tenth of
// the tolerance besides: a gap below it does not keep x from being a solution.
func (d *Detector) gap(ctx context.Context, s *krylov.State) error {
	x, r := s.X, s.R
	if r == nil { // GMRES has them at the end of a cycle only
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

// read looks at a vector that the solver is about to read.
func (d *Detector) read(v []float64) error {
	if d.isNewest(v) {
		if sum := checksum(v, d.turn); sum != d.sum {
			return &Finding{CodeChecksum, fmt.Sprintf("the newest basis vector is not what was written: checksum %016x, expected %016x", sum, d.sum)}
		}
	}
	return nil
}

// give looks at a vector of which the solver is about to give the halo to others. The
// newest basis vector was finite when it was written, as sums that it is of were.
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

// AllFinite says whether all elements are. What is not stays in a sum; and if sums
// overflow, a second look tells.
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

// A checksum is of one of so many parts of a vector, each of them every eighth piece of
// 64 elements.
const (
	turns = 8
	piece = 64
)

// checksum returns a number that any change in that part of v changes, all but surely.
// It has four independent sums, for speed.
func checksum(v []float64, turn int) uint64 {
	const odd = 0x9e3779b97f4a7c15
	var s0, s1, s2, s3 uint64
	for lo := turn * piece % max(len(v), 1); lo < len(v); lo += turns * piece {
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

// watchOperator returns an operator that looks at what it is given first.
func watchOperator(a krylov.Operator, look func([]float64) error) krylov.Operator {
	return krylov.OperatorFunc(func(ctx context.Context, y, x []float64) {
		if err := look(x); err != nil {
			panic(future.Thrown{Err: err})
		}
		a.Apply(ctx, y, x)
	})
}

// A watchedSpace looks at the rank's parts of sums.
type watchedSpace struct{ krylov.Space }

func (w watchedSpace) Sum(parts, sums []float64) *future.Future[struct{}] {
	for _, p := range parts {
		if math.IsNaN(p) || math.IsInf(p, 0) {
			return future.Failed[struct{}](&Finding{CodeNonFinite, fmt.Sprintf("the rank's part of an inner product is %g", p)})
		}
	}
	return w.Space.Sum(parts, sums)
}
