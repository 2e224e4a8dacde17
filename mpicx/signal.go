package mpicx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"

	pkgerrors "github.com/pkg/errors"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// SignalError tells every rank of the communicator, this one too, of an error code: each gets a
// *PropagatedError with a Failure of this code, from the Wait that it is in or from its next
// operation (paper section III-A, signal_error). [Comm.Signal] does the same with a Go error.
//
// SignalError returns that *PropagatedError. If an error of c came first, it returns that one.
// Inside a Try the code is then not sent; elsewhere the next operation returns the error with the
// code. If ctx ends first, SignalError returns ctx's cause; the code still reaches all ranks.
func (c *Comm) SignalError(ctx context.Context, code int) error {
	if err := c.ready("SignalError", ctx); err != nil {
		return err
	}
	defer runtime.KeepAlive(c) // the program uses it until then: see dropped
	return c.signal(ctx, &codeError{code})
}

// Signal tells every rank of the communicator, this one too, of err, as SignalError does of a code.
// The others get err's text, and its code if it has a method ErrorCode() int, as an *MPIError has.
// At this rank errors.Is and errors.As find err itself in what is returned. A nil err is an
// *MPIError.
//
// Call Signal where no function can return the error, for example in a goroutine that watches over
// a computation: inside a Try the error stays there for the computation, which returns it. It
// belongs to the Try that ctx comes from or, if that is not running, to the innermost one.
// Otherwise use [Comm.Try], or [Throw] inside Try. To end a communicator for good, use
// [Comm.Revoke].
func (c *Comm) Signal(ctx context.Context, err error) error {
	if bad := c.ready("Signal", ctx); bad != nil {
		return bad
	}
	if err == nil {
		return mpiErrorf("Signal", ClassOther, "nil error, expected one for the other ranks")
	}
	defer runtime.KeepAlive(c)
	return c.signal(ctx, err)
}

// codeError is the error of SignalError.
type codeError struct{ code int }

func (e *codeError) Error() string  { return fmt.Sprintf("error %d", e.code) }
func (e *codeError) ErrorCode() int { return e.code }

func (c *comm) signal(ctx context.Context, err error) error {
	f := newFailure(err, 2)
	var path []int
	if s := c.scopeOn(ctx); s != nil {
		path = s.entry.Path()
	}
	r, inTry := &ledger.Raised{Cause: traced(err)}, false
	var over error
	late := false
	c.proc.feed(func() {
		if over = c.proc.overBy(ctx); over != nil {
			return
		}
		if inTry = c.ledger.Path() != nil; path == nil {
			path = c.ledger.Path()
		}
		f.path = encodePath(path)
		r.Data = f.encode()
		if late = c.ledger.Late(); late || c.ledger.Raise(r) == nil {
			r = nil
		}
	})
	if over != nil {
		return with(over, err)
	}
	var v error
	if r != nil && inTry { // other goroutines may have ended the Try by then
		v = c.verdictOf(ctx, r)
	} else {
		v = c.verdict(ctx)
	}
	switch {
	case hasType[*PropagatedError](v):
		return with(v, err)
	case v != nil:
		return c.interrupted(ctx, "Signal", v)
	}
	over = locked(&c.proc.mu, func() error { // another goroutine was told of it, or has ended the Try
		switch {
		case late:
			return with(cmp.Or(c.proc.overBy(ctx), c.ledger.Last()), err)
		case r != nil && r.Verdict != nil:
			return r.Verdict.Face
		}
		return nil
	})
	if over == nil { // nobody can be told
		over = ofOperation("Signal", c.untold())
	}
	return over
}

// verdictOf waits until the verdict of r may be told, and returns it. If an ancestor's verdict
// comes first, verdictOf returns that one: it may have kept members from making c, and then the
// round of r does not end. It returns nil if the job is over and r has no verdict.
func (c *comm) verdictOf(ctx context.Context, r *ledger.Raised) error {
	for {
		var changed <-chan struct{}
		c.proc.feed(func() {
			if !c.ledger.Told(r) {
				changed = c.proc.nextChange()
			}
		})
		switch {
		case changed != nil:
		case r.Verdict == nil:
			return nil
		default:
			c.know(r.Verdict.Face)
			return r.Verdict.Face
		}
		if _, err := c.lookIn(ctx, ledger.Take, nil); err != nil {
			return err
		}
		if err := c.awaitChange(ctx, changed); err != nil {
			return err
		}
	}
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
