package mpicx

import (
	"cmp"
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// close ends the scope and its context. It is called when the scope's function has returned.
func (s *scope) close() {
	s.comm.proc.feed(s.entry.Close)
	var cause error
	if s.entry.Ended() {
		cause = &arriving{s}
	}
	s.end(cause)
	if p := s.comm.proc; p.ledger.Waits() { // another goroutine, which may outlive the function
		p.place.Nudge()
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
	if has := c.verdictIn(err); has != nil && !c.isPast(has) {
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
					f.again = has.Verdict.Round + 1
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
func (c *Comm) isPast(e *ledger.Error) bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return e.IsPast(&c.ledger)
}

// isAbove says whether err is an error of an ancestor of e's communicator. Such an error concerns
// more of the program than e does.
func (c *Comm) isAbove(err error, e *ledger.Error) bool {
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
