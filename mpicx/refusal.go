package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// ready returns the error of a call that is refused: on a nil communicator, after the end
// of its job, or without a context.
func (c *Comm) ready(op string, ctx context.Context) error {
	switch {
	case c == nil:
		return mpiErrorf(op, ClassComm, nilComm)
	case c.proc.stage.Load() == stageOver:
		return jobOver(op, c.name)
	case ctx == nil:
		return mpiErrorf(op, ClassOther, nilContext)
	}
	return nil
}

// readyFor is ready for a call that calls fn.
func (c *Comm) readyFor(op string, ctx context.Context, fn func(context.Context) error) error {
	if err := c.ready(op, ctx); err != nil {
		return err
	}
	if fn == nil {
		return mpiErrorf(op, ClassOther, nilFunction)
	}
	return nil
}

// nowhere returns the future of an operation on a nil communicator.
func nowhere[T any](op string) *future.Future[T] {
	return future.Failed[T](mpiErrorf(op, ClassComm, nilComm))
}

// begin begins the operation op. It returns the operation's epoch, or the error that ends the
// operation at once: an error that this rank has not been told of, or that c is closed.
func (c *Comm) begin(op string) (transport.Epoch, error) {
	epoch := c.t.Epoch() // before the check, see transport.Comm
	if !c.ledger.NeedsLook() {
		return epoch, nil
	}
	c.proc.exitIfDead()
	err := c.untold()
	if err == nil && c.isUnwinding() {
		err = errUnwinding // a Wait reports the verdict instead
	}
	return epoch, ofOperation(op, err)
}

// failed returns the future of an operation on c that was refused with err. c may be nil.
func failed[T any](c *Comm, err error) *future.Future[T] {
	f, p := future.New[T]()
	if c != nil {
		waiting.Of(f).Keep(c.keeperAfter(err))
	}
	p.Complete(*new(T), err)
	return f
}

// keeperAfter returns the keeper of an operation that begin has refused with err. It is nil
// if c is closed, because the operation itself says so.
func (c *Comm) keeperAfter(err error) waiting.Keeper {
	if isClosedError(err) {
		return nil
	}
	return c.keeper
}
