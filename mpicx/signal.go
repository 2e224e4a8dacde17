package mpicx

import (
	"context"
	"errors"
	"fmt"

	pkgerrors "github.com/pkg/errors"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// SignalError has every rank of the communicator, this one too, get a
// *PropagatedError with a Failure of this code: from the Wait each is in, or
// from its next operation (paper section III-A, signal_error).
//
// It returns the oldest error that this rank has not been told, which mostly is the
// one with its own failure: all that ranks signal before they know of each other's
// are in one. But if an error of before is still to be told, that comes first, and the
// one with this failure from the next operation. errors.Is(err, cause) tells, with
// what Signal was given. If ctx ends first, SignalError returns ctx's cause; the error
// is on its way then all the same.
func (c *Comm) SignalError(ctx context.Context, code int) error {
	if err := c.ready("SignalError", ctx); err != nil {
		return err
	}
	return c.signal(ctx, &codeError{code})
}

// Signal is SignalError for a Go error, of which the others get the text, and
// the code if it has a method ErrorCode() int. In the error that has its failure,
// errors.Is and errors.As find err itself. A nil err is an *MPIError.
func (c *Comm) Signal(ctx context.Context, err error) error {
	if bad := c.ready("Signal", ctx); bad != nil {
		return bad
	}
	if err == nil {
		return mpiErrorf("Signal", ClassOther, "a nil error, expected one to tell the others")
	}
	return c.signal(ctx, err)
}

// codeError is an error that is only a code.
type codeError struct{ code int }

func (e *codeError) Error() string { return fmt.Sprintf("error %d", e.code) }

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
	if r == nil { // there is nobody to tell
		return ofOperation("Signal", c.untold())
	}
	c.proc.mu.Lock() // another goroutine of this rank has reported it
	defer c.proc.mu.Unlock()
	return r.Verdict.Face
}

// raise has every rank get a verdict with f. It returns nil if there is nobody to
// tell.
func (c *Comm) raise(f Failure, r *ledger.Raised) *ledger.Raised {
	r.Data = f.encode()
	var raised *ledger.Raised
	c.proc.feed(func() { raised = c.ledger.Raise(r) })
	return raised
}

// traced returns err with a stack, unless it has one: once, where the fault
// starts. At this rank %+v prints it; the others get Failure.Origin.
func traced(err error) error {
	var has interface{ StackTrace() pkgerrors.StackTrace }
	if errors.As(err, &has) {
		return err
	}
	return pkgerrors.WithStack(err)
}
