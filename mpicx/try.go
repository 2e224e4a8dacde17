package mpicx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
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
	if r == nil { // there is nobody to tell
		return ofOperation("Signal", c.unreported())
	}
	c.proc.mu.Lock() // another goroutine of this rank has reported it
	defer c.proc.mu.Unlock()
	return r.Verdict.Face
}

// Try makes local errors everyone's. It runs fn, and an error that fn returns or
// throws goes to all ranks as by Signal; so each rank's Try returns the same
// *PropagatedError, whatever fn was doing there, and the communicator goes on.
// Panics other than thrown errors pass through: see Guard.
//
// Try takes back what is thrown in its own goroutine only: Throw, MustWait and MustGet in
// any other end the process, unless that defers future.Catch. What an error group of such
// goroutines returns, fn returns: an error of theirs goes to all ranks, and a panic
// goes on in Try. See the example. One goroutine of a rank is told of a peer's error, from
// its Wait; the others see that their context has ended, and begin no operation then.
//
// The context that fn gets ends the moment an error of a peer arrives, so that
// computations and I/O inside stop too. A Wait with it reports that error, and so
// does Try if fn returns that its context has ended.
//
// An error that all ranks have already, from a Wait inside fn, is returned as
// fn returned it.
//
// Calls may nest: the innermost Try on a communicator handles an error. If it comes
// while a rank is between two inner calls, it ends the outer one's context there;
// Waits with that go on to work. A function that returns then, because its context has
// ended, before it has entered the inner call that the error comes from, has failed for
// itself: the others go on inside of the outer Try, so they are told by an error of its
// own.
//
// Try does not wait for the other ranks. That it returned nil here does not say that it
// did so elsewhere: a rank still in it may get the next error there (P7). What all must
// have done together takes TryAll.
func (c *Comm) Try(ctx context.Context, fn func(context.Context) error) error {
	if err := c.readyFor("Try", ctx, fn); err != nil {
		return err
	}
	s := c.enterScope(ctx, false)
	defer s.close()
	err := s.run(fn)
	if err == nil {
		err = c.verdict(s.outer)
	} else {
		err = s.share(err)
	}
	s.markTold(err)
	return err
}

// share returns the error that all ranks have in place of the function's: err, if
// they have it already.
func (s *scope) share(err error) error {
	c := s.comm
	if c.everyoneHas(err) {
		return err
	}
	if v := c.verdictIn(err); v != nil {
		return v
	}
	if v := s.reason(err); v != nil {
		if !s.inside(v) {
			return v
		}
		err = fmt.Errorf("%w: %w", err, v)
	}
	told := c.signal(s.asOuter(), err)
	if (told == ErrRevoked || isClosedError(told)) && !errors.Is(err, told) {
		// Nobody was told here. But a verdict of another communicator, by which the function
		// has ended, is still what a Try on that one ends with: see verdictIn.
		return fmt.Errorf("%w: %w", told, withoutVerdicts(err))
	}
	return told
}

// asOuter returns the context around the scope, in which it still is the innermost.
func (s *scope) asOuter() context.Context { return &revived{s.outer, context.WithoutCancel(s)} }

// Guard runs fn, and if it leaves by an error, a panic or runtime.Goexit, every
// other rank gets a *CommCorruptedError from this communicator for good: what a
// Comm's destructor does in the paper (section III-A). This rank waits for
// nobody. Its Guard returns fn's own error, returned or thrown, not the
// *CommCorruptedError that all others get of it; a panic goes on. As Try does, Guard
// takes back what is thrown in its own goroutine only.
//
// The context that fn gets ends when the communicator is corrupted.
func (c *Comm) Guard(ctx context.Context, fn func(context.Context) error) (err error) {
	if err := c.readyFor("Guard", ctx, fn); err != nil {
		return err
	}
	s := c.enterScope(ctx, true)
	defer s.close()
	err = errUnwinding
	defer c.unwinding(&err)
	err = s.run(fn)
	if v := s.reason(err); v != nil {
		err = v
	}
	return err
}

// unwinding, deferred, corrupts c if the function it is deferred by leaves by an
// error or does not return, and lets it go on.
func (c *Comm) unwinding(err *error) {
	v := recover()
	cause := *err
	switch p, ok := v.(*future.Panicked); {
	case ok: // peers do not need the stack
		cause = fmt.Errorf("panic: %v", p.Value)
	case v != nil:
		cause = fmt.Errorf("panic: %v", v)
	case cause == errUnwinding:
		cause = ErrGoexit
	}
	if cause != nil {
		c.raise(newFailure(cause, 2), &ledger.Raised{Cause: traced(cause), Corrupt: true})
	}
	if v != nil {
		panic(v)
	}
}

// errUnwinding is the error of a function that has not returned.
var errUnwinding = errors.New("mpicx: unwinding")

// everyoneHas says whether err is, or wraps, an error of c or of one that c is
// derived from, so that all ranks of c have it. If a Try has returned it before,
// the program has seen it; then what wraps it is an error of its own.
func (c *Comm) everyoneHas(err error) bool {
	var v *verdict
	if p, ok := errors.AsType[*PropagatedError](err); ok {
		v = &p.verdict
		if atomic.LoadUint32(&v.told) != 0 && err != error(p) {
			return false
		}
	} else if k, ok := errors.AsType[*CommCorruptedError](err); ok {
		v = &k.verdict
	}
	return v != nil && v.comm != nil && c.ledger.DerivedFrom(&v.comm.ledger)
}

// verdictIn returns the verdict of c, or of one that c is derived from, that made this
// rank raise what err tells of on another communicator: all ranks of c have that one. It
// is nil if there is none, or a Try has returned it.
func (c *Comm) verdictIn(err error) error {
	var v *verdict
	switch e := err.(type) {
	case *PropagatedError:
		v = &e.verdict
	case *CommCorruptedError:
		v = &e.verdict
	case *hidden:
		return c.verdictIn(e.err)
	}
	if v != nil && c.everyoneHas(err) && atomic.LoadUint32(&v.told) == 0 {
		return err
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return c.verdictIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if v := c.verdictIn(err); v != nil {
				return v
			}
		}
	}
	return nil
}

// markTold notes that a Try has returned err. One of a Try around it is only on its
// way there.
func (s *scope) markTold(err error) {
	p, ok := err.(*PropagatedError)
	here := s.path()
	if ok && (p.comm != s.comm || s.entry.Outermost() || slices.ContainsFunc(p.Failures, func(f Failure) bool { return strings.HasPrefix(f.path, here) })) {
		atomic.StoreUint32(&p.told, 1)
	}
}
