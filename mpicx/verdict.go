package mpicx

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// lookIn returns the error that the program is to be told, in mode m, at a goroutine with the
// context ctx. If an error is not resolved yet, it returns a channel that is closed when the caller
// should look again.
//
// If a scope of ctx is over and an error has ended it, lookIn returns that error. If a scope of ctx
// is over without one, lookIn uses the mode ledger.Read in place of Take, so it does not end the
// error that it returns. It returns nothing to a Wait whose operation has ended with a verdict that
// is over, which is its result: end returns what the operation has ended with, or nil. A caller
// without an operation passes nil.
func (c *comm) lookIn(ctx context.Context, m ledger.Mode, end func() error) (wait <-chan struct{}, err error) {
	p := c.proc
	if m == ledger.Peek && p.stage.Load() == stageOver {
		return nil, jobOver(useOp, c.name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.isOver(end) {
		return nil, nil
	}
	if err := p.overBy(ctx); err != nil {
		return nil, err
	}
	if m == ledger.Take && p.hasLeft(ctx) {
		m = ledger.Read
	}
	found, e, pending := c.ledger.Look(m)
	switch found {
	case ledger.Verdict:
		return nil, e.Face
	case ledger.Revocation:
		return nil, ErrRevoked
	case ledger.Closure:
		return nil, mpiErrorf(useOp, ClassComm, "%s is closed", c.name)
	}
	if !pending {
		return nil, nil
	}
	return p.nextChange(), nil
}

// untold returns the error that the next Wait would return, if it is resolved.
func (c *comm) untold() error {
	_, err := c.lookIn(context.Background(), ledger.Peek, nil)
	return err
}

// verdict blocks until the rounds that this rank has notices of are resolved. It returns the oldest
// error, or nil if there is none or, where no Try is running, another goroutine was told of it.
func (c *comm) verdict(ctx context.Context) error { return c.verdictFor(ctx, ledger.Take, nil) }

// verdictFor is verdict for a Wait of mode m, with end as in lookIn. A reduction's function is told
// no error, because it must not wait: the program is told by the Wait for the reduction.
func (c *comm) verdictFor(ctx context.Context, m ledger.Mode, end func() error) error {
	if !c.ledger.NeedsLook() || locked(&c.proc.mu, func() bool { return c.isOver(end) }) {
		return nil
	}
	c.notInReduction("waits", "for an operation")
	if m == ledger.TakeToRepair { // errors that end other Waits do not end this one
		c.proc.addWaiters(1)
		defer c.proc.addWaiters(-1)
	}
	for {
		changed, err := c.lookIn(ctx, m, end)
		c.proc.exitIfDead() // the rank may have died in the meantime
		if err != nil || changed == nil {
			return err
		}
		if err := c.awaitChange(ctx, changed); err != nil && !locked(&c.proc.mu, func() bool { return c.isOver(end) }) {
			return err
		}
	}
}

// isOver says whether what end returns is a propagated error that a scope of this rank has dealt
// with. The caller holds mu.
func (c *comm) isOver(end func() error) bool {
	if end == nil {
		return false
	}
	p, ok := end().(*PropagatedError)
	return ok && p.of != nil && c.ledger.DerivedFrom(p.of.Comm) && p.of.IsOver()
}

// awaitChange waits until changed is closed. If the context ends before, it returns the cause. That
// an error has ended a scope of the context does not count: the caller waits for that error.
func (c *comm) awaitChange(in context.Context, changed <-chan struct{}) error {
	c.notInReduction("waits", "for an operation")
	c.proc.exitIfDead() // no change comes
	c.proc.partBut(&c.ledger)
	ctx := patient(in)
	first := c.proc.enter(&c.ledger)
	over := c.waits("the verdict")
	woken := c.proc.await(changed, ctx.Done())
	over()
	c.proc.leave(first) // before the caller looks again: see Ledger.EndWait
	c.proc.exitIfDead()
	if !woken && ctx.Err() != nil && interrupted(ctx) == nil {
		return c.proc.endOf(in, context.Cause(ctx))
	}
	return nil
}

// failure waits until it is known which error has ended the scope's context, and returns it. It
// returns nil if the error was another scope's.
func (s *scope) failure(ctx context.Context) error {
	c := s.comm
	for {
		var e *ledger.Error
		var pending, revoked bool
		var changed <-chan struct{}
		c.proc.feed(func() {
			revoked = c.ledger.IsRevoked()
			if e, pending = s.entry.Failure(); pending {
				changed = c.proc.nextChange()
			}
		})
		switch {
		case e != nil:
			c.know(e.Face)
			return e.Face
		case revoked:
			return fmt.Errorf("in a Try or Guard of %s: %w", c.name, ErrRevoked)
		case !pending:
			return nil
		}
		if err := c.awaitChange(ctx, changed); err != nil {
			return err
		}
	}
}

// verdictIn returns the verdict that err is, if all ranks of c have it: a propagated error of c, or
// of a communicator that c is derived from, as it was returned; or a corruption of one of these,
// wrapped or not. It returns nil for other errors.
func (c *comm) verdictIn(err error) *ledger.Error {
	var v *verdict
	if p, ok := err.(*PropagatedError); ok {
		v = &p.verdict
	} else if k, ok := errors.AsType[*CommCorruptedError](err); ok {
		v = &k.verdict
	}
	if v == nil || v.of == nil || !c.ledger.DerivedFrom(v.of.Comm) {
		return nil
	}
	return v.of
}

// Err returns the error that the next Wait on c would return, and leaves it to that Wait. It
// returns nil if there is no error, or if the ranks have not yet agreed on it. Err never
// blocks. A rank that computes for long can poll it; the end of Try's context says the same
// without polling.
func (c *Comm) Err() error {
	if c == nil {
		return mpiErrorf("Err", ClassComm, nilComm)
	}
	if !c.ledger.NeedsLook() {
		return nil
	}
	c.proc.exitIfDead()
	err := c.untold()
	if err == nil {
		c.proc.feed(func() { c.ledger.Answer(ledger.Peek) })
		err = c.untold()
	}
	c.know(err)
	return ofOperation("Err", err)
}

// know notes that the program was told err, if err says that c is corrupted.
func (c *comm) know(err error) {
	if hasType[*CommCorruptedError](err) {
		c.proc.feed(c.ledger.Know)
	}
}

// Of says whether the error is c's own. A Wait on c also returns errors of the communicators
// that c is derived from. Those are handled by the Try and Guard calls on them.
func (v *verdict) Of(c *Comm) bool { return v.isOf(c.of()) }

func (v *verdict) isOf(c *comm) bool { return c != nil && v.of != nil && v.of.Comm == &c.ledger }
