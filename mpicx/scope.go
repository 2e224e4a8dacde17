package mpicx

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

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
	s, err := c.enter("Try", ctx, fn, false)
	if err != nil {
		return err
	}
	defer s.close()
	if err = s.run(fn); err == nil {
		err = c.outOfStep("Try")
	}
	return s.leave("Try", err)
}

// enter opens the scope of a call of fn, or returns why it is refused.
func (c *Comm) enter(op string, ctx context.Context, fn func(context.Context) error, guard bool) (*scope, error) {
	err := c.ready(op, ctx)
	if err == nil && fn == nil {
		err = mpiErrorf(op, ClassOther, nilFunction)
	}
	if err != nil {
		return nil, err
	}
	return c.enterScope(ctx, guard)
}

// Throw panics with err as a future.Thrown. The nearest Try, TryAll or Guard of this goroutine
// turns it back into an error, as catch does in C++; until then no other rank knows of it. In a
// goroutine that none of them called, defer future.Catch first. A nil err throws nothing.
// [Comm.Signal] tells the other ranks at once, and the caller continues.
func Throw(err error) {
	if err != nil {
		panic(future.Thrown{Err: err})
	}
}

// run calls fn, and returns what fn returned or threw.
func (s *scope) run(fn func(context.Context) error) error {
	s.running = true
	err := s.catch(fn)
	s.running = false
	return err
}

func (s *scope) catch(fn func(context.Context) error) (err error) {
	defer func() {
		if p, ok := err.(*future.Panicked); ok {
			panic(p) // it is of another goroutine, and continues here (C3)
		}
	}()
	defer hook.Catch(&err)
	return fn(s)
}

// close ends the scope and its context. It is called when the scope's function has returned.
func (s *scope) close() {
	if s.running {
		s.comm.corruptInside(s)
	}
	s.comm.proc.feed(s.entry.Close)
	var cause error
	if s.entry.Ended() {
		cause = &arriving{s}
	}
	s.end(cause)
	if p := s.comm.proc; p.ledger.Waits() { // another goroutine, which may outlive the function
		p.place.Nudge()
	}
	s.comm.proc.partAll()
}

// corruptInside corrupts the communicators that were made from c inside of s. A panic or
// runtime.Goexit has ended the function of s, so nobody at this rank uses them any more.
func (c *comm) corruptInside(s *scope) {
	cause := fmt.Errorf("a panic or runtime.Goexit has left the Try on %s in which it was made", c.name)
	for _, d := range c.family()[1:] {
		if s.entry.Encloses(&d.ledger) && !d.hasRaised() {
			d.raise(newFailure(cause, 2), &ledger.Raised{Cause: traced(cause), Corrupt: true})
		}
	}
}

// leave ends a Try whose function has returned err, and returns the error of the scope (T2). That
// is the oldest error that this rank knows of. If there is none, it is this rank's own error, which
// leave sends to all ranks. op is the name of the operation for errors.
func (s *scope) leave(op string, err error) error {
	c := s.comm
	rest := beside(err)
	err = s.because(err)
	own := err // the error that is this rank's own; nil: err is an error that all ranks have
	if has := c.verdictIn(err); has != nil && !c.isPast(has) || c.isStop(err) {
		own = nil
	}
	var f Failure
	if own != nil {
		f = newFailure(own, 1)
	}
	var sent *ledger.Raised // the ledger's record of own, once it is sent
	for {
		c.proc.exitIfDead()
		var e *ledger.Error
		var next ledger.Step
		var changed <-chan struct{}
		c.proc.feed(func() {
			switch e, next = s.entry.Leave(own != nil && sent == nil); next {
			case ledger.Await:
				changed = c.proc.nextChange()
			case ledger.Signal: // at once, before another goroutine consents to the end of a round
				if e != nil && (own == nil || errors.Is(own, context.Canceled)) { // the error of a Try inside
					own = e.Face
					f = newFailure(own, 1)
				}
				f.path = encodePath(s.entry.Path())
				if has := c.verdictIn(own); has != nil && has.IsPast(&c.ledger) {
					f.returnedIn = has.Verdict.Round + 1
				}
				sent = c.ledger.Raise(&ledger.Raised{Cause: traced(own), Data: f.encode()})
			}
		})
		switch {
		case next == ledger.Return && e == nil:
			return err
		case next == ledger.Return && c.isAbove(err, e):
			return err
		case next == ledger.Return:
			own = cmp.Or(own, rest)
			if _, bare := err.(waiting.Common); own == nil && !bare { // it wraps a corruption
				own = err
			}
			both := with(e.Face, own)
			if own != nil && both != own && !errors.Is(e.Face, own) && c.proc.observer != nil {
				c.proc.observer.Happened(observe.Event{Kind: observe.Unsent, Comm: c.name, Text: own.Error()})
			}
			return both
		case next == ledger.Await:
			if err := c.awaitChange(s.outer, changed); err != nil {
				return c.interrupted(s.outer, op, err)
			}
		case sent == nil: // nobody can be told
			told := ofOperation(op, c.untold())
			if told == nil {
				return own
			}
			return with(told, own)
		}
	}
}

// isPast says whether e is an error of c itself that a scope of this rank has already handled. If a
// function returns e nevertheless, the scope around it treats e as this rank's own error.
func (c *comm) isPast(e *ledger.Error) bool {
	return locked(&c.proc.mu, func() bool { return e.IsPast(&c.ledger) })
}

// isAbove says whether err is an error of an ancestor of e's communicator. Such an error concerns
// more of the program than e does.
func (c *comm) isAbove(err error, e *ledger.Error) bool {
	has := c.verdictIn(err)
	return has != nil && has.Comm != e.Comm && e.Comm.DerivedFrom(has.Comm)
}

// beside returns the part of err that does not say that a context has ended, for example the error
// of a deferred call that the function has joined with the context's error. It returns nil if err
// has no such part, or is not joined with the end of a context.
func beside(err error) error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return beside(e.Unwrap())
	case interface{ Unwrap() []error }:
		rest := []error{}
		for _, err := range e.Unwrap() {
			if !errors.Is(err, context.Canceled) {
				rest = append(rest, err)
			}
		}
		if len(rest) < len(e.Unwrap()) {
			return errors.Join(rest...)
		}
	}
	return nil
}

// because returns err, unless err says that a context has ended (errors.Is context.Canceled) and an
// error has ended the context of the scope's function. Then it returns that error.
func (s *scope) because(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	for _, by := range []*scope{s, interrupted(s)} {
		if by != nil && by.isEnded() {
			if v := by.failure(s.outer); v != nil {
				return v
			}
		}
	}
	if v := s.comm.untold(); v != nil && s.isEnded() { // of an outer Try; the program was told before
		return v
	}
	return err
}

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
	s, err := c.enter("Guard", ctx, fn, true)
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
	e := s.known()
	if e == nil || s.comm.isAbove(err, e) {
		return err
	}
	return with(e.Face, err)
}

// unwinding, deferred, corrupts c if the deferring function ends with an error, a panic or
// runtime.Goexit. A panic passes through.
func (c *comm) unwinding(err *error) {
	v := recover()
	cause := *err
	switch p := panicked(v); {
	case p != nil:
		cause = p
	case cause == errUnwinding:
		cause = c.proc.whyGoexit()
	}
	if cause != nil && !c.isStop(cause) {
		c.raise(newFailure(cause, 2), &ledger.Raised{Cause: traced(cause), Corrupt: true})
	}
	if v != nil {
		panic(v)
	}
}

// panicked returns the error that peers get for a panic with v: they do not need the stack. It
// returns nil if v is nil, or is an error that was thrown.
func panicked(v any) error {
	switch p := v.(type) {
	case nil, future.Thrown:
		return nil
	case *PanicError:
		v = p.Value
	case *future.Panicked:
		v = p.Value
	}
	return fmt.Errorf("panic: %v", v)
}

// unwindAll corrupts c, because this rank's program has ended by err. If c is broken already, it
// corrupts the communicators made from c. It returns false if all of these are broken; the peers
// then only learn that the rank is dead.
func (c *comm) unwindAll(f Failure, err error) (told bool) {
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
	switch err.(type) {
	case *PanicError, *future.Panicked:
		return panicked(err)
	}
	return err
}
