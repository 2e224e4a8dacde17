package mpicx

import "context"

// Try runs fn and tells all ranks of its error. If fn returns or throws an error at any rank, Try
// returns a *PropagatedError with the same Failures at every rank, no matter what fn returns there.
// Afterwards the communicator works. Panics other than thrown errors pass through: see Guard.
//
// Try does not wait for the other ranks. When it has returned nil here, another rank may still be
// in its Try, and its error then belongs to the next Try here. Use [Comm.TryAll] in a loop that
// retries. Use [Comm.Guard] if a rank that fails does not rejoin the others.
//
// An error of a peer ends the context of fn, so that computations and I/O stop too. Until fn has
// returned, every Wait, Test, Err and Signal on c, and on communicators derived from c, reports the
// error, in every goroutine. An error that fn returns after one of these has reported it is not sent:
// errors.Is finds it at this rank only. If it wraps the *PropagatedError, Try returns it as it is.
// Errors that ranks return before they know of each other's are in one *PropagatedError.
//
// Goroutines of fn return their errors to fn, as an error group does: see the example of TryAll. What
// they throw ends the process, unless they defer future.Catch. A goroutine that outlives fn gets the
// error from what it waits for with the context of fn. Operations take no context when they begin, so
// it must not begin them.
//
// Calls may nest. An error belongs to the Try in whose function it was raised. If it is raised in an
// inner Try, and leaves an outer one or meets a rank that is only in the outer one, it is the outer
// Try's error too, at all ranks.
//
// If this rank has made a collective call that does not match a peer's, and no Wait has
// reported that, Try reports it at its end.
func (c *Comm) Try(ctx context.Context, fn func(context.Context) error) error {
	if err := c.readyFor("Try", ctx, fn); err != nil {
		return err
	}
	s, err := c.enterScope(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	if err = s.run(fn); err == nil {
		err = c.outOfStep("Try")
	}
	return s.leave("Try", err)
}
