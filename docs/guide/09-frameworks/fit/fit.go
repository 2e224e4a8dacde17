// Package fit minimizes a sum whose terms are divided among ranks, by the methods of
// gonum/optimize. It must never know what the terms are, nor repair a communicator.
package fit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/optimize"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A Loss returns the sum of this rank's terms at x, and adds their derivatives to grad. Rank 0
// calls it in a goroutine of the method. It begins no operation that involves other ranks.
type Loss func(ctx context.Context, x, grad []float64) (float64, error)

// A Point is a place, and the sum of all terms there.
type Point struct {
	X []float64
	F float64
}

// Lower returns the point with the lower sum.
func Lower(a, b Point) Point {
	if b.F < a.F {
		return b
	}
	return a
}

// A sum is what a rank knows of the sum of all terms.
type sum struct {
	comm *mpicx.Comm
	loss Loss

	mu   sync.Mutex // a method may evaluate at several places at once
	last Point
	grad []float64 // at last
	best Point
	err  error // the first
}

// An Error says that a minimization has failed.
type Error struct {
	Best Point // the best that this rank knows; others may know one more or one less
	Err  error // a *mpicx.PropagatedError if a loss or the method has failed
}

func (e *Error) Error() string { return fmt.Sprintf("fit failed at %.6g: %v", e.Best.F, e.Err) }

// Unwrap returns Err. At the rank that failed, errors.Is finds the loss's own error.
func (e *Error) Unwrap() error { return e.Err }

// Minimize minimizes the sum of all terms by the method of rank 0. It is collective: all ranks
// give the same start, and return the same point, or an *Error each. After a
// *mpicx.PropagatedError the communicator works.
func Minimize(ctx context.Context, comm *mpicx.Comm, loss Loss, start Point, method optimize.Method) (Point, error) {
	own, err := comm.Dup().Get(ctx) // so that our messages and errors are ours
	if err != nil {
		return start, &Error{start, err}
	}
	defer own.Release()
	s := &sum{comm: own, loss: loss, best: start}
	err = own.TryAll(ctx, func(ctx context.Context) error {
		if own.Rank() == 0 {
			return s.drive(ctx, start.X, method)
		}
		return s.serve(ctx)
	})
	if err != nil {
		return s.best, &Error{s.best, err}
	}
	return s.best, nil
}

// drive runs the method at rank 0.
func (s *sum) drive(ctx context.Context, start []float64, method optimize.Method) error {
	_, err := optimize.Minimize(optimize.Problem{
		Func: func(x []float64) float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.evaluate(ctx, x)
			return s.last.F
		},
		Grad: func(grad, x []float64) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.evaluate(ctx, x)
			copy(grad, s.grad)
		},
		Status: func() (optimize.Status, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.err != nil {
				return optimize.Failure, s.err
			}
			return optimize.NotTerminated, nil
		},
	}, start, &optimize.Settings{GradientThreshold: 1e-2}, method)
	if err != nil {
		return err
	}
	return mpicx.Bcast(s.comm, make([]float64, 1+len(start)), 0).Wait(ctx) // there is no more to do
}

// evaluate is called in goroutines of the method. These take no error, and a panic in one of them
// would end the process.
func (s *sum) evaluate(ctx context.Context, x []float64) {
	if s.err != nil || slices.Equal(x, s.last.X) {
		return
	}
	if s.err = s.order(ctx, x); s.err != nil {
		s.last.F = math.NaN()
	}
}

// order has all ranks evaluate at x.
func (s *sum) order(ctx context.Context, x []float64) (err error) {
	defer future.Catch(&err) // a panic continues in TryAll, where drive returns it
	if err := mpicx.Bcast(s.comm, append([]float64{1}, x...), 0).Wait(ctx); err != nil {
		return err
	}
	return s.add(ctx, x)
}

// serve evaluates where rank 0 says.
func (s *sum) serve(ctx context.Context) error {
	order := make([]float64, 1+len(s.best.X))
	for {
		if err := mpicx.Bcast(s.comm, order, 0).Wait(ctx); err != nil || order[0] == 0 {
			return err
		}
		if err := s.add(ctx, order[1:]); err != nil {
			return err
		}
	}
}

// add adds up the terms of all ranks at x.
func (s *sum) add(ctx context.Context, x []float64) error {
	sums := make([]float64, 1+len(x)) // the terms, and their derivatives
	var err error
	if sums[0], err = s.loss(ctx, x, sums[1:]); err != nil {
		return err
	}
	if err := mpicx.Allreduce(s.comm, sums, sums, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	s.last, s.grad = Point{slices.Clone(x), sums[0]}, sums[1:]
	s.best = Lower(s.best, s.last)
	return nil
}
