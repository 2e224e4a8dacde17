package mpicx

import (
	"errors"

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
	if dead, ok := errors.AsType[*transport.DeadError](err); ok && c.ulfm != nil { // the black channel survives no death
		return c.needed(op, dead.Rank)
	}
	return mpiError(op, err)
}
