package mpicx

import (
	"errors"
	"fmt"
	"slices"

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
	err := c.unreported()
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
	if err == nil {
		return nil
	}
	if err == transport.ErrDied {
		c.proc.die() // before the program sees the error: it shall not
	}
	if err == errchan.ErrOver {
		if v := c.unreported(); v != nil {
			err = v
		}
	}
	dead, ok := errors.AsType[*transport.DeadError](err)
	if !ok {
		return mpiError(op, err)
	}
	if dead.Rank == AnySource {
		all := c.Failed()
		slices.Sort(all)
		return c.met(&ProcFailedError{Ranks: all})
	}
	c.mitigator.Died(dead.Rank) // which may tell of it later
	c.learn([]int{dead.Rank})
	if c.propagates() && c.isClosed() { // there is nobody left to tell (F2)
		return &MPIError{Op: op, Class: ClassComm, Text: fmt.Sprintf("rank %d has died, and %s is closed", dead.Rank, c.name), err: &ProcFailedError{Ranks: []int{dead.Rank}}}
	}
	return c.met(&ProcFailedError{Ranks: []int{dead.Rank}})
}
