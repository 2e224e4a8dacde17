package mpicx

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// Revoke ends all operations on c at every rank, now and later, but not those that repair it:
// Shrink, Replace, Agree, AgreeFailed, Failed, AckFailed and Close (MPI_Comm_revoke). They end
// with ErrRevoked or, under ErrorsPropagate, with a *CommCorruptedError. Revoke is permanent.
// It is not collective, waits for nobody, and may be called more than once.
//
// Revoke needs -tags ulfm: with the black channel it returns errors.ErrUnsupported.
//
// Call Revoke under ErrorsReturn after a death that only some ranks have noticed, so that the
// others come to the repair. To report an error after which the communicator still works, call
// [Comm.Signal].
func (c *Comm) Revoke(context.Context) error {
	if err := c.ready("Revoke", context.Background()); err != nil {
		return err
	}
	if c.ulfm == nil {
		return unsupported("Revoke", c.untold())
	}
	if c.propagates() {
		err := fmt.Errorf("revoked by rank %d", c.rank)
		c.raise(newFailure(err, 1), &ledger.Raised{Cause: err, Corrupt: true})
		return nil
	}
	c.revoke()
	return nil
}

func (c *Comm) revoke() {
	c.revoked(c.rank)
	c.ulfm.Revoke()
}

// revoked ends pending operations, with ErrRevoked.
func (c *Comm) revoked(by int) {
	first := false
	c.proc.feed(func() { first = c.ledger.Revoked(by) })
	if first {
		c.t.Revoke(ErrRevoked)
		c.ulfm.Abandon(ErrRevoked)
		c.t.Quiesce(func() { c.proc.feed(c.ledger.RevokeDone) })
	}
}

// Revoked says whether this rank knows that c has been revoked (MPI_Comm_is_revoked) or
// corrupted.
func (c *Comm) Revoked() bool {
	c.there("Revoked")
	return locked(c.proc, func() bool { return c.ledger.IsRevoked() || c.ulfm != nil && c.ledger.IsCorrupted() })
}
