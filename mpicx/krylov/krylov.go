package krylov

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/mpicx/go-mpicx/future"
)

// A Space is where vectors live: every rank holds some elements of each, and an
// inner product is the sum of the ranks' parts of it.
type Space interface {
	// Sum starts to add up parts over all ranks, element by element, into sums.
	// Both belong to the Space until the future is done. All ranks get sums that
	// are the same bit by bit, so that they take the same decisions.
	Sum(parts, sums []float64) *future.Future[struct{}]
}

// A Dotter is a Space that computes inner products itself, in place of the ranks' parts and their
// sum: [distributed.ExactSpace] does so without rounding.
type Dotter interface {
	Space
	// Dot computes sums[i] = x[i]·y[i] of whole vectors, of which x and y have this rank's parts.
	// All ranks get the same bits. It throws its errors.
	Dot(ctx context.Context, sums []float64, x, y [][]float64)
}

// Alone is the Space of a program without ranks.
type Alone struct{}

// Sum copies parts to sums.
func (Alone) Sum(parts, sums []float64) *future.Future[struct{}] {
	copy(sums, parts)
	return future.Ready(struct{}{})
}

// An Operator is a linear map. Apply computes y = A·x of this rank's part of x
// and y, which do not overlap. It throws its errors.
type Operator interface {
	Apply(ctx context.Context, y, x []float64)
}

// An OperatorFunc is a function as an Operator.
type OperatorFunc func(ctx context.Context, y, x []float64)

// Apply calls f.
func (f OperatorFunc) Apply(ctx context.Context, y, x []float64) { f(ctx, y, x) }

// A System is the equation A·x = b.
type System struct {
	Space Space
	A     Operator
	M     Operator  // the preconditioner: Apply is M⁻¹, near to A⁻¹; nil for none
	B     []float64 // this rank's part
}

// Options say when a method ends, and who looks on.
type Options struct {
	Tol     float64 // the end: ‖r‖ ≤ Tol·‖b‖
	MaxIter int     // or this number of iterations
	Restart int     // GMRES: the length of a cycle; 0 means 30

	// The method gives up when the residual has grown by this factor since the beginning:
	// 0 means 1e5.
	Divergence float64

	// Observe is called at the end of each iteration, at every rank. It may
	// change what State shows, at its own risk. An error ends the method.
	Observe func(ctx context.Context, s *State) error

	// From continues where the Snapshot, of the same method, was saved, instead of beginning at x.
	From *Snapshot
}

// A State is what an observer sees of a method between two iterations. It is
// valid during Observe only.
type State struct {
	Iter     int       // iterations done in this call
	Residual float64   // ‖r‖/‖b‖ as the method's recursion has it
	X        []float64 // the iterate; with GMRES that at the beginning of the cycle
	R        []float64 // the residual as the recursion has it; nil with GMRES
	P        []float64 // the newest vector of the Krylov basis, which the next iteration reads

	method  string
	opt     Options
	normB   float64
	norm    float64                                   // of the residual
	limit   float64                                   // the residual at which the method gives up
	err     error                                     // why it ends; nil: it does not, or has converged
	current func(ctx context.Context, x, r []float64) // nil: they are X and R
	save    func(ctx context.Context, to *Snapshot)
}

// residual notes the norm of a residual. The method diverges if it has grown too much since the
// first.
func (s *State) residual(norm float64) {
	s.norm, s.Residual = norm, relative(norm, s.normB)
	if s.Iter == 0 {
		s.limit = cmp.Or(s.opt.Divergence, 1e5) * s.Residual
	} else if s.Residual > s.limit {
		s.err = &BreakdownError{s.method, s.Iter, "the residual", s.Residual, fmt.Sprintf("at most %.3g: it diverges", s.limit)}
	}
}

// iterated ends an iteration, after which the residual has the given norm.
func (s *State) iterated(ctx context.Context, norm float64) {
	s.Iter++
	s.residual(norm)
	if s.opt.Observe != nil {
		s.err = cmp.Or(s.opt.Observe(ctx, s), s.err)
	}
}

func (s *State) converged() bool { return s.norm <= s.opt.Tol*s.normB }

// continues says whether there is another iteration.
func (s *State) continues() bool { return s.err == nil && !s.converged() && s.Iter < s.opt.MaxIter }

// end returns the result of a method that has ended.
func (s *State) end() (Result, error) {
	return Result{s.Iter, s.Residual, s.err == nil && s.converged()}, s.err
}

// broken returns the result of a method that can't continue.
func (s *State) broken(quantity string, value float64, expected string) (Result, error) {
	s.err = &BreakdownError{s.method, s.Iter + 1, quantity, value, expected}
	return s.end()
}

// Current stores the iterate in x, and the recursion's residual
// in r. It needs no other rank, if the preconditioner does not.
func (s *State) Current(ctx context.Context, x, r []float64) {
	if s.current != nil {
		s.current(ctx, x, r)
		return
	}
	copy(x, s.X)
	copy(r, s.R)
}

// Save stores in to what the method needs to continue from here.
func (s *State) Save(ctx context.Context, to *Snapshot) { s.save(ctx, to) }

// MaxVectors is how many Vectors a Snapshot has at most.
const MaxVectors = 3

// A Snapshot is a method's state, of which vectors are this rank's part. It is
// reused when saved to again.
type Snapshot struct {
	X       []float64   // the iterate
	Vectors [][]float64 // what else the method's recursion has; nil if it begins anew from X
	Scalars []float64
}

func (s *Snapshot) store(x []float64, scalars []float64, vectors ...[]float64) {
	s.X = append(s.X[:0], x...)
	s.Scalars = append(s.Scalars[:0], scalars...)
	s.Vectors = append(s.Vectors, make([][]float64, max(0, len(vectors)-len(s.Vectors)))...)
	for i, v := range vectors {
		s.Vectors[i] = append(s.Vectors[i][:0], v...)
	}
}

func (s *Snapshot) load(x []float64, scalars []*float64, vectors ...[]float64) {
	copy(x, s.X)
	for i, v := range scalars {
		*v = s.Scalars[i]
	}
	for i, v := range vectors {
		copy(v, s.Vectors[i])
	}
}

// A Result says how a method ended.
type Result struct {
	Iterations int
	Residual   float64 // ‖r‖/‖b‖ as the recursion has it
	Converged  bool    // Residual ≤ Tol
}

// A Method is CG, GMRES or BiCGStab: it improves x, this rank's part, until it
// solves sys. An error is that of an observer or a *BreakdownError.
type Method func(ctx context.Context, sys System, x []float64, opt Options) (Result, error)

// A BreakdownError says that a method can't continue: the matrix or the preconditioner is
// not of the kind that it is for, or the method diverges. All ranks get it alike.
type BreakdownError struct {
	Method   string
	Iter     int
	Quantity string // what has this value
	Value    float64
	Expected string
}

func (e *BreakdownError) Error() string {
	return fmt.Sprintf("%s: %s is %.3g in iteration %d, expected %s", e.Method, e.Quantity, e.Value, e.Iter, e.Expected)
}

// residual computes r = b - A·x.
func (sys *System) residual(ctx context.Context, r, x []float64) {
	sys.A.Apply(ctx, r, x)
	for i, b := range sys.B {
		r[i] = b - r[i]
	}
}

// precondition returns M⁻¹·r in z, or r itself if there is no preconditioner.
func (sys *System) precondition(ctx context.Context, z, r []float64) []float64 {
	if sys.M == nil {
		return r
	}
	sys.M.Apply(ctx, z, r)
	return z
}

// TrueResidual computes ‖b-A·x‖/‖b‖ without any recursion. It is collective.
func (sys *System) TrueResidual(ctx context.Context, x []float64) float64 {
	r := make([]float64, len(x))
	sys.residual(ctx, r, x)
	d := newDots(sys.Space, 2)
	rr, bb := d.two(ctx, r, r, sys.B, sys.B)
	return relative(math.Sqrt(rr), math.Sqrt(bb))
}

// epsilon is the distance from 1 to the next float64.
const epsilon = 0x1p-52

// isRounding reports whether the squared length of a product is so small beside the largest one
// of such a vector that nothing but rounding is left of it: the matrix is singular there.
func isRounding(squared, largest float64) bool {
	const rounding = 10 * epsilon
	return squared == 0 || squared < rounding*rounding*largest
}

// relative returns r/b. If b is 0 the only solution is 0, and relative returns r.
func relative(r, b float64) float64 {
	if b == 0 {
		return r
	}
	return r / b
}
