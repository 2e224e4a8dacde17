package mpicx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// failure returns the error that the program gets for an operation on c that has ended with err. It
// returns verdicts unchanged, and other errors as an *MPIError. If the operation needs a dead
// process, failure first does what the error handler says.
func (c *comm) failure(op string, err error) error {
	switch err {
	case nil:
		return nil
	case transport.ErrDied:
		c.proc.die() // before the program sees the error
	case future.ErrGoexit: // of a reduction's function
		err = ErrGoexit
	case errchan.ErrOver:
		if v := c.untold(); v != nil {
			err = v
		}
	}
	if m, ok := errors.AsType[*transport.MismatchError](err); ok {
		c.toldMismatch.Store(m)
		return c.mismatched(op, m)
	}
	if waiting.IsCommon(err) { // what is inside is of another operation, or another communicator
		return ofOperation(op, err)
	}
	if left, ok := err.(*transport.LeftError); ok && left.Released {
		if op == "Close" {
			return left
		}
		return c.forsaken(op, left)
	}
	if dead, ok := errors.AsType[*transport.DeadError](err); ok && c.ulfm != nil { // the black channel survives no death
		return c.needed(op, dead.Rank)
	}
	return mpiError(op, err)
}

// raise gives every rank a verdict with f. It returns nil if c is broken or closed, because no rank
// can then be told.
func (c *comm) raise(f Failure, r *ledger.Raised) *ledger.Raised {
	r.Data = f.encode()
	var raised *ledger.Raised
	c.proc.feed(func() { raised = c.ledger.Raise(r) })
	return raised
}

// forsaken returns the error of an operation that needs a rank which has released c. Under
// ErrorsPropagate it has all ranks told, and the program then gets the corruption instead.
func (c *comm) forsaken(op string, e *transport.LeftError) error {
	err := &MPIError{Op: op, Class: ClassComm, Text: strings.Replace(e.Error(), "the communicator", c.name, 1), err: e}
	if c.propagates() {
		c.raise(newFailure(err, 1), &ledger.Raised{Cause: err, Corrupt: true})
	}
	return err
}

// callFailure is like failure, for a collective operation whose future has the cell.
func (c *comm) callFailure(op string, err error, cell *waiting.Cell) error {
	err = c.failure(op, err)
	c.callFailed(op, err, cell)
	return err
}

// callFailed records in leaks that a collective operation ends with err, if the cause is the
// operation itself (see isOthers), or other ranks have not made the call.
func (c *comm) callFailed(op string, err error, cell *waiting.Cell) {
	if err == nil || cell.Kept() == nil {
		return
	}
	f := observe.FailedFuture{Cell: cell, Comm: &c.ledger, Name: c.name, Err: err, Call: true, Unmet: hasLeft(err) || hasType[*transport.MismatchError](err)}
	if gone := c.missingIn(err); len(gone) > 0 {
		f.Err, f.Unmet = &MPIError{Op: op, Class: ClassOther, Text: haveReturned(gone, c.parent != nil), err: err}, true
	}
	if f.Unmet || !isOthers(err) {
		c.proc.leaks.Failing(f)
	}
}

// hasLeft says whether an operation ended with err because the program of a rank has ended.
func hasLeft(err error) bool {
	left, ok := errors.AsType[*transport.LeftError](err)
	return ok && !left.Released
}

// missingIn returns the ranks that are missing in an operation that ends with err because their
// programs have returned. If one of the missing ranks has died, it returns nil.
func (c *comm) missingIn(err error) []int {
	var missing []int
	if p, ok := errors.AsType[*ProcFailedError](err); ok {
		missing = p.Ranks
	} else if k, ok := errors.AsType[*CommCorruptedError](err); ok && len(k.Failures) == 0 && k.isOf(c) {
		missing = k.Dead
	}
	if dead, gone := c.whoReturned(missing); len(dead) == 0 {
		return gone
	}
	return nil
}

// begins begins a collective call, op. It returns the call's future, whose Waits look for errors in
// mode m, and a function that ends the call and completes the future.
func begins[T any](c *comm, op string, m ledger.Mode) (f *future.Future[T], end func(T, error)) {
	f, p := future.New[T]()
	waiting.Of(f).Keep(&keeper{comm: c, call: op, mode: m})
	c.proc.calls.Add(1)
	c.calls.Add(1)
	return f, func(v T, err error) {
		c.callFailed(op, err, waiting.Of(f))
		p.Complete(v, err)
		c.calls.Add(-1)
		c.proc.callEnded()
	}
}

// mismatched returns the error of an operation that a mismatch of collective calls has ended.
func (c *comm) mismatched(op string, e *transport.MismatchError) error {
	class, place := classOf(e), fmt.Sprintf("collective call %d of %s", e.Number, c.name)
	var text string
	switch {
	case e.Theirs.Kind() == signature.Refused:
		class = ClassOther
		text = fmt.Sprintf("%v, %s, can't complete, because rank %d had a bad argument", e.Own, place, e.Theirs.Call().Root)
	case e.Own.Kind().IsSpread() && e.Own.Call().Root != e.Theirs.Call().Root && e.Own.String() == e.Theirs.String():
		class = ClassCount
		text = fmt.Sprintf("%v, %s, with other counts than at rank %d, expected the same at all ranks", e.Own, place, e.Source)
	default:
		first, second := fmt.Sprintf("%v at rank %d", e.Own, c.rank), fmt.Sprintf("%v at rank %d", e.Theirs, e.Source)
		if e.Source < c.rank {
			first, second = second, first
		}
		text = fmt.Sprintf("%s, %s, both as %s, expected the same at all ranks", first, second, place)
	}
	return &MPIError{Op: op, Class: class, Text: text, err: e}
}

// outOfStep returns the error of op after a mismatch of collective calls on c, or nil if there was
// none. The rank is then halted: its operations on c fail until the next error that all ranks have.
func (c *comm) outOfStep(op string) error {
	if m, ok := c.t.Mismatch().(*transport.MismatchError); ok {
		return c.mismatched(op, m)
	}
	return nil
}

// untoldMismatch returns a mismatch of collective calls on c, or on a communicator derived from it,
// that no operation has reported.
func (c *comm) untoldMismatch() error {
	for _, d := range c.family() {
		if m, ok := d.t.Mismatch().(*transport.MismatchError); ok && d.toldMismatch.Load() != m {
			return d.mismatched(m.Own.Kind().String(), m)
		}
	}
	return nil
}
