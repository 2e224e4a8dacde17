package mpicx

import (
	"errors"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// begin is how the operation called op starts: it returns the epoch that the
// operation belongs to, or the error that it ends with at once: one that this rank
// has not been told of yet, or that c is closed.
func (c *Comm) begin(op string) (transport.Epoch, error) {
	epoch := c.t.Epoch() // before the check, see transport.Comm
	if !c.ledger.Troubled() {
		return epoch, nil
	}
	c.proc.exitIfDead()
	err := c.untold()
	if err == nil && c.isUnwinding() {
		err = errUnwinding // a Wait reports the verdict in place of it
	}
	return epoch, ofOperation(op, err)
}

// sequence numbers a collective operation of an epoch.
func (c *Comm) sequence(e transport.Epoch) int {
	s := &c.collectives
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != e {
		s.epoch, s.next = e, 0
	}
	s.next++
	return s.next
}

// failure returns err as the error of an operation on c. If it is a death, what
// the error handler says happens first.
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
	if dead, ok := errors.AsType[*transport.DeadError](err); ok {
		return c.needed(op, dead.Rank)
	}
	return mpiError(op, err)
}
