package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// ready returns the error of a call that can't be made: on no communicator, after its
// job, or without a context.
func (c *Comm) ready(op string, ctx context.Context) error {
	switch {
	case c == nil:
		return mpiErrorf(op, ClassComm, nilComm)
	case c.proc.over.Load():
		return jobOver(op, c.name)
	case ctx == nil:
		return mpiErrorf(op, ClassOther, nilContext)
	}
	return nil
}

// readyFor is ready of a call that calls fn.
func (c *Comm) readyFor(op string, ctx context.Context, fn func(context.Context) error) error {
	if err := c.ready(op, ctx); err != nil {
		return err
	}
	if fn == nil {
		return mpiErrorf(op, ClassOther, nilFunction)
	}
	return nil
}

// there panics if c is nil, where no error can be returned.
func (c *Comm) there(call string) {
	if c == nil {
		panic("mpicx: " + call + ": " + nilComm)
	}
}

// nowhere returns the future of an operation on a nil communicator.
func nowhere[T any](op string) *future.Future[T] {
	return future.Failed[T](mpiErrorf(op, ClassComm, nilComm))
}

// failed returns a future of c that has ended before it began.
func failed[T any](c *Comm, err error) *future.Future[T] {
	f, p := future.New[T]()
	waiting.Of(p.Future()).Keep(c.keeperAfter(err))
	var none T
	p.Complete(none, err)
	return f
}

// keeperAfter returns the keeper of an operation that begin has ended with err. That c
// is closed is said by the operation itself, which has none.
func (c *Comm) keeperAfter(err error) waiting.Keeper {
	if isClosedError(err) {
		return nil
	}
	return c.keeper
}
