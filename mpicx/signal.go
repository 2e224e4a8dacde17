package mpicx

import (
	"context"
	"errors"
	"fmt"

	pkgerrors "github.com/pkg/errors"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// SignalError tells every rank of the communicator, this one too, of an error code: each gets a
// *PropagatedError with a Failure of this code, from the Wait that it is in or from its next
// operation (paper section III-A, signal_error). [Comm.Signal] does the same with a Go error.
//
// SignalError returns the oldest error that this rank has not been told. That is usually the
// one with its own failure, together with what other ranks signalled before they knew of it. If
// an earlier error has not been told yet, SignalError returns that, and the next operation
// returns the one with this failure. To tell them apart, call Signal and test for its error
// with errors.Is. If ctx ends first, SignalError returns ctx's cause; the error still reaches
// all ranks.
func (c *Comm) SignalError(ctx context.Context, code int) error {
	if err := c.ready("SignalError", ctx); err != nil {
		return err
	}
	return c.signal(ctx, &codeError{code})
}

// Signal tells every rank of the communicator, this one too, of err, as SignalError does of a code.
// The others get err's text, and its code if it has a method ErrorCode() int: of an [MPIError] its
// Class. At this rank errors.Is and errors.As find err itself in what is returned. A nil err is an
// *MPIError.
//
// Call Signal where no function can return the error, for example in a goroutine that watches
// over a computation. Otherwise use [Comm.Try], which signals the error that its function
// returns, or [Throw] inside Try. To end a communicator for good, use [Comm.Revoke].
func (c *Comm) Signal(ctx context.Context, err error) error {
	if bad := c.ready("Signal", ctx); bad != nil {
		return bad
	}
	if err == nil {
		return mpiErrorf("Signal", ClassOther, "nil error, expected one for the other ranks")
	}
	return c.signal(ctx, err)
}

// codeError is the error of SignalError.
type codeError struct{ code int }

func (e *codeError) Error() string  { return fmt.Sprintf("error %d", e.code) }
func (e *codeError) ErrorCode() int { return e.code }

func (c *Comm) signal(ctx context.Context, err error) error {
	f := newFailure(err, 2)
	if s := c.scopeOn(ctx); s != nil {
		f.path = s.path()
	}
	r := c.raise(f, &ledger.Raised{Cause: traced(err)})
	if err := c.verdict(ctx); err != nil {
		return c.interrupted(ctx, "Signal", err)
	}
	if r == nil { // nobody can be told
		return ofOperation("Signal", c.untold())
	}
	c.proc.mu.Lock() // another goroutine of this rank was told of it
	defer c.proc.mu.Unlock()
	return r.Verdict.Face
}

// raise gives every rank a verdict with f. It returns nil if c is broken or closed, because
// nobody can be told.
func (c *Comm) raise(f Failure, r *ledger.Raised) *ledger.Raised {
	r.Data = f.encode()
	var raised *ledger.Raised
	c.proc.feed(func() { raised = c.ledger.Raise(r) })
	return raised
}

// traced returns err with a stack, unless it has one. %+v prints the stack at this rank. Other
// ranks get Failure.Origin.
func traced(err error) error {
	var has interface{ StackTrace() pkgerrors.StackTrace }
	if errors.As(err, &has) {
		return err
	}
	return pkgerrors.WithStack(err)
}
