package mpicx

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
)

// Guard runs fn. If fn leaves by an error, a panic or runtime.Goexit, every other rank gets a
// *CommCorruptedError, and the communicator is broken for good: what the destructor of a Comm does
// in the paper (section III-A). Use it where a rank that fails does not rejoin the others. Where it
// does, use [Comm.Try] or [Comm.TryAll].
//
// A corruption by a peer ends the context of fn. If fn then fails, Guard returns the corruption; if
// fn returns nil, so does Guard, and the next operation returns the corruption. A rank that fails
// itself waits for nobody: Guard returns the error that fn returned or threw. Panics other than
// thrown errors pass through. Like Try, Guard catches only what is thrown in its own goroutine.
func (c *Comm) Guard(ctx context.Context, fn func(context.Context) error) (err error) {
	if err := c.readyFor("Guard", ctx, fn); err != nil {
		return err
	}
	s, err := c.enterScope(ctx, true)
	if err != nil {
		return err
	}
	defer s.close()
	err = errUnwinding
	defer c.unwinding(&err)
	err = s.because(s.run(fn))
	if err != nil {
		err = s.orCorruption(err)
	}
	return err
}

// orCorruption returns the corruption that has ended the Guard, with err, if it is known. A rank
// that unwinds waits for no other rank (C1).
func (s *scope) orCorruption(err error) error {
	s.comm.proc.mu.Lock()
	e, _ := s.entry.Failure()
	s.comm.proc.mu.Unlock()
	if e == nil || s.comm.isAbove(err, e) {
		return err
	}
	return with(e.Face, err)
}

// unwinding, deferred, corrupts c if the deferring function ends with an error, a panic or
// runtime.Goexit. A panic passes through.
func (c *Comm) unwinding(err *error) {
	v := recover()
	cause := *err
	switch p, ok := v.(*future.Panicked); {
	case ok: // peers do not need the stack
		cause = fmt.Errorf("panic: %v", p.Value)
	case v != nil:
		cause = fmt.Errorf("panic: %v", v)
	case cause == errUnwinding:
		cause = c.proc.whyGoexit()
	}
	if cause != nil {
		c.raise(newFailure(cause, 2), &ledger.Raised{Cause: traced(cause), Corrupt: true})
	}
	if v != nil {
		panic(v)
	}
}

// unwindAll corrupts c, because this rank's program has ended by err. If c is broken already, it
// corrupts the communicators made from c. It returns false if all of these are broken; the peers
// then only learn that the rank is dead.
func (c *Comm) unwindAll(f Failure, err error) (told bool) {
	if c.propagates() && c.raise(f, &ledger.Raised{Cause: err, Corrupt: true, Leaving: true}) != nil {
		return true
	}
	for _, d := range c.derived() {
		told = d.unwindAll(f, err) || told
	}
	return told
}

// withoutStack returns the error that has ended a rank's program as its peers get it.
func withoutStack(err error) error {
	switch p := err.(type) {
	case *PanicError:
		return fmt.Errorf("panic: %v", p.Value)
	case *future.Panicked:
		return fmt.Errorf("panic: %v", p.Value)
	}
	return err
}
