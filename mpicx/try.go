package mpicx

import "context"

// Try runs fn and tells all ranks of its error. If fn returns or throws an error at any rank, Try
// returns a *PropagatedError with the same Failures at every rank, no matter what fn returns there.
// Afterwards the communicator works. Panics other than thrown errors pass through: see Guard.
//
// Try does not wait for the other ranks. When it has returned nil here, another rank may still be
// in its Try, and its error then belongs to the next Try here. Use [Comm.TryAll] in a loop that
// retries, and [Comm.Guard] if a rank that fails does not rejoin the others.
//
// An error of a peer ends the context of fn, and is what every Wait, Test, Err and Signal on c, and
// on communicators derived from c, reports until fn has returned, in every goroutine. Another error
// that fn returns after such a report is not sent; errors.Is finds it at this rank. If calls nest,
// an error belongs to the Try in whose function it was raised: docs/guarantees.md has the rules.
//
// Goroutines of fn return their errors to fn, as an error group does: see the example of TryAll.
// One that outlives fn gets the error from what it waits for with the context of fn, and must not
// begin operations. What a goroutine throws ends the process, unless it defers future.Catch.
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
