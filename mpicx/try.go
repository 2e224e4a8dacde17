package mpicx

import "context"

// Try runs fn and tells all ranks of its error. If fn returns or throws an error at any rank, Try
// returns the same *PropagatedError at every rank, no matter what fn was doing there. The
// communicator works afterwards. Panics other than thrown errors pass through: see Guard.
//
// Try does not wait for the other ranks. When it has returned nil here, another rank may still be
// in its Try and get the next error there. Use [Comm.TryAll] in a loop that retries: it returns nil
// only when all ranks have succeeded. Use [Comm.Guard] if a rank that fails does not rejoin the
// others.
//
// The context that fn gets ends as soon as an error of a peer arrives, so that computations and
// I/O inside stop too. A Wait with that context returns the peer's error, and so does Try if fn
// returns that its context has ended. If a Wait inside fn has returned an error that all ranks
// have, and fn returns it, Try returns it unchanged.
//
// Try catches only what is thrown in its own goroutine. Throw, MustWait and MustGet in any
// other goroutine end the process, unless that goroutine defers future.Catch. If fn returns
// what an error group of such goroutines returns, their errors go to all ranks, and a panic of
// theirs continues in Try: see the example. An error of a peer ends the Waits of these goroutines
// too. They must not begin operations after their context has ended, because peers would not
// know of them.
//
// Errors of several ranks are in one *PropagatedError if none of them was told of the others'
// before. A rank can add its own until one of its goroutines waits, on any communicator. If another
// goroutine waits while fn computes, an error that fn returns afterwards is the next error: all
// ranks get a second *PropagatedError for it.
//
// Calls may nest. The innermost Try on a communicator handles an error. If the error arrives
// while this rank is between two inner calls, it ends the context of the outer call; Waits with
// that context still work. If fn then returns because its context has ended, before it has
// entered the inner call in which the error was raised, the outer Try of this rank fails with
// an error of its own, which the others are told: they are still inside their outer Try.
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
