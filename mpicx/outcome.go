package mpicx

import (
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// failure returns the error that the program gets for an operation on c that has ended with err:
// verdicts unchanged, everything else as an *MPIError. If the operation needs a dead process, failure
// first does what the error handler says.
func (c *Comm) failure(op string, err error) error {
	switch err {
	case nil:
		return nil
	case transport.ErrDied:
		c.proc.die() // before the program sees the error
	case errchan.ErrOver:
		if v := c.untold(); v != nil {
			err = v
		}
	}
	if m, ok := errors.AsType[*transport.MismatchError](err); ok {
		c.toldMismatch.Store(m)
		return c.mismatched(op, m)
	}
	if dead, ok := errors.AsType[*transport.DeadError](err); ok && c.ulfm != nil { // the black channel survives no death
		return c.needed(op, dead.Rank)
	}
	return mpiError(op, err)
}

// callFailure is failure for a collective operation, whose future has the cell. Other ranks may wait for this one in it.
func (c *Comm) callFailure(op string, err error, cell *waiting.Cell) error {
	err = c.failure(op, err)
	if p := c.proc; err != nil && cell.Kept() != nil && !isOthers(err) && (p.driver != nil || !p.over.Load()) {
		p.stops.Store(true)
		p.leaks.failing(failedFuture{cell, &c.ledger, c.name, err, true})
	}
	return err
}

// mismatched returns the error of an operation that a mismatch of collective calls has ended.
func (c *Comm) mismatched(op string, e *transport.MismatchError) error {
	if e.Theirs.Kind() == signature.Refused {
		return &MPIError{Op: op, Class: ClassOther, err: e,
			Text: fmt.Sprintf("%v, collective call %d of %s, can't complete, because rank %d had a bad argument", e.Own, e.Number, c.name, e.Theirs.Call().Root)}
	}
	if e.Own.Kind().IsSpread() && e.Own.Call().Root != e.Theirs.Call().Root && e.Own.String() == e.Theirs.String() {
		return &MPIError{Op: op, Class: ClassCount, err: e,
			Text: fmt.Sprintf("%v, collective call %d of %s, with other counts than at rank %d, expected the same at all ranks", e.Own, e.Number, c.name, e.Source)}
	}
	first, second := fmt.Sprintf("%v at rank %d", e.Own, c.rank), fmt.Sprintf("%v at rank %d", e.Theirs, e.Source)
	if e.Source < c.rank {
		first, second = second, first
	}
	return &MPIError{Op: op, Class: classOf(e), err: e,
		Text: fmt.Sprintf("%s, %s, both as collective call %d of %s, expected the same at all ranks", first, second, e.Number, c.name)}
}

// outOfStep returns the error of a mismatch of collective calls that the program was not told of by
// the end of op. The rank is halted: until the next error that all ranks have, its operations on c
// fail.
func (c *Comm) outOfStep(op string) error {
	if m, ok := c.t.Mismatch().(*transport.MismatchError); ok {
		return c.mismatched(op, m)
	}
	return nil
}

// untoldMismatch returns a mismatch of collective calls on c, or on a communicator derived from it,
// that no operation has reported.
func (c *Comm) untoldMismatch() error {
	for _, d := range c.family() {
		if m, ok := d.t.Mismatch().(*transport.MismatchError); ok && d.toldMismatch.Load() != m {
			return d.mismatched(m.Own.Kind().String(), m)
		}
	}
	return nil
}
