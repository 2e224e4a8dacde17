package mpicx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

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
	s := c.enterScope(ctx, false)
	defer s.close()
	err := s.run(fn)
	if err == nil {
		err = c.outOfStep("Try")
	}
	if err == nil {
		err = c.verdict(s.outer)
	} else {
		err = s.share(err)
	}
	s.markTold(err)
	return err
}

// share returns the error that all ranks get for err, the function's error. If all ranks have
// err already, share returns err; otherwise it signals.
func (s *scope) share(err error) error {
	c := s.comm
	if c.everyoneHas(err) {
		return err
	}
	if v := c.verdictIn(err); v != nil {
		return v
	}
	if v := s.reason(err); v != nil {
		switch {
		case !c.everyoneHas(v): // it is of another communicator
			err = v
		case s.inside(v):
			err = fmt.Errorf("%w: %w", err, v)
		default:
			return v
		}
	}
	switch err.(type) {
	case *PropagatedError, *CommCorruptedError:
		// A Try on another communicator has returned err, perhaps instead of an error of c.
		if v := s.heard(); v != nil {
			return v
		}
	}
	told := c.signal(s.asOuter(), err)
	if is[*PropagatedError](told) { // perhaps instead of the error with which fn has left a Guard
		c.proc.feed(c.ledger.Unaware)
	}
	if (told == ErrRevoked || isClosedError(told)) && !errors.Is(err, told) {
		// Nobody was told. If the function has ended with a verdict of another communicator,
		// a Try on that communicator still ends with this verdict: see verdictIn.
		return fmt.Errorf("%w: %w", told, withoutVerdicts(err))
	}
	return told
}

// asOuter returns the context around the scope, with the scope still as the innermost.
func (s *scope) asOuter() context.Context { return &revived{s.outer, context.WithoutCancel(s)} }

// everyoneHas says whether all ranks of c have err: it is, or wraps, an error of c or of one
// that c is derived from. If a Try has returned the error before, the program has seen it, and
// an error that wraps it is a new one.
func (c *Comm) everyoneHas(err error) bool {
	var v *verdict
	if p, ok := errors.AsType[*PropagatedError](err); ok {
		v = &p.verdict
		if atomic.LoadUint32(&v.told) != 0 && err != error(p) {
			return false
		}
	} else if k, ok := errors.AsType[*CommCorruptedError](err); ok {
		v = &k.verdict
	}
	return v != nil && v.comm != nil && c.ledger.DerivedFrom(v.comm)
}

// verdictIn returns the verdict of c, or of one that c is derived from, that err wraps: this
// rank has raised that verdict on another communicator, and all ranks of c have it. It returns
// nil if there is none, or if a Try has returned it.
func (c *Comm) verdictIn(err error) error {
	var v *verdict
	switch e := err.(type) {
	case *PropagatedError:
		v = &e.verdict
	case *CommCorruptedError:
		v = &e.verdict
	case *hidden:
		return c.verdictIn(e.err)
	}
	if v != nil && c.everyoneHas(err) && atomic.LoadUint32(&v.told) == 0 {
		return err
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return c.verdictIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if v := c.verdictIn(err); v != nil {
				return v
			}
		}
	}
	return nil
}

// markTold notes that a Try has returned err. If the error was raised only in Try calls around
// this one, it is still on its way there, and not marked.
func (s *scope) markTold(err error) {
	p, ok := err.(*PropagatedError)
	here := s.path()
	if ok && (p.comm != &s.comm.ledger || s.entry.Outermost() || slices.ContainsFunc(p.Failures, func(f Failure) bool { return f.path == here || !strings.HasPrefix(here, f.path) })) {
		atomic.StoreUint32(&p.told, 1)
	}
}
