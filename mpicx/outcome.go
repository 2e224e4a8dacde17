package mpicx

import (
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// failure returns the error that the program gets of an operation on c that ended with
// err: verdicts as they are, everything else as an *MPIError. If the operation needs a
// dead process, what the error handler says is done first.
func (c *Comm) failure(op string, err error) error {
	switch err {
	case nil:
		return nil
	case transport.ErrDied:
		c.proc.die() // before the program sees the error: it shall not
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

// mismatched returns the error of a rank that has made another collective call than a peer,
// as an operation that ends by it has it.
func (c *Comm) mismatched(op string, e *transport.MismatchError) error {
	first, second := fmt.Sprintf("%v at rank %d", e.Own, c.rank), fmt.Sprintf("%v at rank %d", e.Theirs, e.Source)
	if e.Source < c.rank {
		first, second = second, first
	}
	return &MPIError{Op: op, Class: classOf(e), err: e,
		Text: fmt.Sprintf("%s, %s, both as collective call %d of %s, expected the same at all ranks", first, second, e.Number, c.name)}
}

// outOfStep returns the error of a rank that has made another collective call than a peer and
// was not told by op's end. Until the next error that all ranks have, c is of no use to it.
func (c *Comm) outOfStep(op string) error {
	if m, ok := c.t.Mismatch().(*transport.MismatchError); ok {
		return c.mismatched(op, m)
	}
	return nil
}

// untoldMismatch returns the error of a mismatch on c, or on what is derived from it, that no
// operation has ended with.
func (c *Comm) untoldMismatch() error {
	for _, d := range c.family() {
		if m, ok := d.t.Mismatch().(*transport.MismatchError); ok && d.toldMismatch.Load() != m {
			return d.mismatched(m.Own.Kind().String(), m)
		}
	}
	return nil
}
