package mpicx

import (
	"cmp"
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// close ends the scope, and its context.
func (s *scope) close() {
	s.comm.proc.feed(s.entry.Close)
	var cause error
	if s.entry.Ended() {
		cause = &arriving{s}
	}
	s.end(cause)
	if p := s.comm.proc; p.ledger.Waits() { // a goroutine that outlives the function
		p.place.Nudge()
	}
}

// leave ends a Try whose function has returned err. It returns the error that is the scope's (T2):
// the oldest one that this rank knows of or, if there is none, its own, which it tells all ranks.
func (s *scope) leave(op string, err error) error {
	c := s.comm
	rest := beside(err)
	err = s.because(err)
	own := err
	if has := c.verdictIn(err); has != nil && !c.isPast(has) {
		own = nil
	}
	var f Failure
	if own != nil {
		f = newFailure(own, 1)
	}
	var sent *ledger.Raised
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
			if own != nil && both != own && !errors.Is(e.Face, own) && c.proc.watchers != nil {
				c.proc.happened(timeline.Line{Event: timeline.Unsent, Comm: c.name, Text: own.Error()})
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

// isPast says whether e is an error of c itself that a scope of this rank has dealt with. If a
// function returns it nevertheless, it is the next scope's own.
func (c *Comm) isPast(e *ledger.Error) bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return e.IsPast(&c.ledger)
}

// isAbove says whether err is the error of a communicator that e's is derived from. It concerns more
// of the program than e.
func (c *Comm) isAbove(err error, e *ledger.Error) bool {
	has := c.verdictIn(err)
	return has != nil && has.Comm != e.Comm && e.Comm.DerivedFrom(has.Comm)
}

// beside returns what err says beside that a context has ended, as when the function has joined it with the
// error of a deferred call. It returns nil if err says nothing else.
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

// because returns the error that has ended the context of the scope's function, if err says only
// that the context has ended. Otherwise err is this rank's own, and because returns it.
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
	if v := s.comm.untold(); v != nil && s.isEnded() { // of a Try around, which this rank has been told before
		return v
	}
	return err
}
