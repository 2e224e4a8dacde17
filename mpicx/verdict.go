package mpicx

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// look returns the error that the program is to be told, in mode m. If an error is not
// resolved yet, it returns a channel that is closed when the caller should look again.
func (c *Comm) look(m ledger.Mode) (wait <-chan struct{}, err error) {
	p := c.proc
	if m == ledger.Peek && p.over.Load() {
		return nil, jobOver(useOp, c.name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
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
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed, nil
}

// untold returns the error that the next Wait would return, if it is resolved.
func (c *Comm) untold() error {
	_, err := c.look(ledger.Peek)
	return err
}

// verdict blocks until the rounds that this rank has notices of are resolved. It returns the
// oldest error, or nil if another goroutine was told of it.
func (c *Comm) verdict(ctx context.Context) error { return c.verdictFor(ctx, ledger.Take) }

// verdictFor is verdict for a Wait of mode m. A reduction's function is told no error, because it
// must not wait: the program is told by the Wait for the reduction.
func (c *Comm) verdictFor(ctx context.Context, m ledger.Mode) error {
	if !c.ledger.NeedsLook() {
		return nil
	}
	c.notInReduction("waits", "for an operation")
	if m == ledger.TakeToRepair { // errors that end other Waits do not end this one
		c.proc.watch(1)
		defer c.proc.watch(-1)
	}
	for {
		wait, err := c.look(m)
		c.proc.exitIfDead() // the rank may have died in the meantime
		if err != nil || wait == nil {
			return err
		}
		ctx = patient(ctx)
		first := c.proc.enter(&c.ledger)
		over := c.waits("the verdict")
		changed := c.proc.await(wait, ctx.Done())
		over()
		c.proc.leave(first) // before it takes the verdict: see Ledger.EndWait
		if !changed && ctx.Err() != nil && interrupted(ctx) == nil {
			return context.Cause(ctx)
		}
	}
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
		c.proc.feed(c.proc.ledger.Answer)
		err = c.untold()
	}
	c.know(err)
	return ofOperation("Err", err)
}

// know notes that the program was told err, if err says that c is corrupted or revoked.
func (c *Comm) know(err error) {
	switch {
	case is[*CommCorruptedError](err):
		c.proc.feed(c.ledger.Know)
	case errors.Is(err, ErrRevoked):
		c.proc.feed(c.ledger.KnowRevoked)
	}
}

// Of says whether the error is c's own. A Wait on c also returns errors of the communicators
// that c is derived from. Those are handled by the Try and Guard calls on them.
func (v *verdict) Of(c *Comm) bool { return c != nil && v.comm == &c.ledger }
