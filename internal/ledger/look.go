package ledger

// A Finding is the result of a look. A Verdict comes with its Error.
type Finding uint8

const (
	// Nothing is to be told.
	Nothing Finding = iota
	// Verdict is the oldest that no look has taken, or a corruption, which each look
	// finds.
	Verdict
	// Revocation says that the communicator is revoked. That is nothing to take: what was
	// pending has ended with it, and what was done keeps its result.
	Revocation
	// Closure says that the communicator is closed.
	Closure
)

// NeedsLook says whether a look may find something. It is one load, and needs no
// lock.
func (c *Comm) NeedsLook() bool { return c.needsLook.Load() }

// disturbs says whether c has something that concerns what is derived from it: not
// if all that is left to say is that c can't be used.
func (c *Comm) disturbs() bool {
	return c.open && c.corrupted == nil || c.moving > 0 || len(c.unreported) > 0
}

// update sets needsLook, here and at what is derived from c.
func (c *Comm) update() {
	above := c.ledger.dead || c.ledger.over
	for a := c.parent; a != nil && !above; a = a.parent {
		above = a.disturbs()
	}
	c.updateBelow(above)
}

func (c *Comm) updateBelow(above bool) {
	below := above || c.disturbs()
	c.needsLook.Store(below || c.corrupted != nil || c.revoked || c.closed)
	for d := c.child; d != nil; d = d.next {
		d.updateBelow(below)
	}
}

// A Mode says what a look is for.
type Mode uint8

const (
	// Peek takes nothing, and finds what is about to be told as well.
	Peek Mode = iota
	// Take is a Wait's or Test's: a verdict that it finds is told.
	Take
	// TakeToRepair is that of an operation that works on a broken communicator: it
	// does not find that c itself is of no use.
	TakeToRepair
	// PeekToRepair is Peek for such an operation, before it begins.
	PeekToRepair
	// TakeToClose is Close's, which keeps a corruption to itself: the program is not told.
	TakeToClose
)

func (m Mode) takes() bool   { return m != Peek && m != PeekToRepair }
func (m Mode) repairs() bool { return m == TakeToRepair || m == PeekToRepair }

// Look is how a Wait, Test or Err of the program sees c. It finds the oldest thing to
// tell, of the oldest ancestor first. Pending says that an error is noticed and not
// resolved, or that it is resolved and pending operations have not ended. Then a caller
// that finds nothing may wait for the next Wake.
func (c *Comm) Look(m Mode) (f Finding, e *Error, pending bool) {
	moving := false
	for a := c; a != nil; a = a.parent {
		moving = moving || a.moving > 0
		pending = pending || a.open && a.corrupted == nil || a.moving > 0
	}
	if moving && m.takes() {
		return Nothing, nil, true
	}
	f, e = c.oldest(m)
	return f, e, pending
}

func (c *Comm) oldest(m Mode) (Finding, *Error) {
	if c.corrupted != nil && c.corrupted.told && !m.repairs() {
		return Verdict, c.corrupted // and nothing but that any more (C4)
	}
	if from := c.elder(); from != nil {
		e := from.unreported[0]
		if m.takes() {
			e.told = true
			from.unreported = from.unreported[1:]
			from.update()
			for d := from; d != nil; d = from.inFamily(d) {
				d.told, d.tries = d.told+1, 0
				for s := d.scopes; s != nil; s = s.next {
					if s.ended && s.heard == nil {
						s.heard = e
					}
				}
			}
		}
		return Verdict, e
	}
	switch {
	case m.repairs():
	case c.corrupted != nil:
		c.corrupted.told = c.corrupted.told || m == Take
		return Verdict, c.corrupted
	case c.revoked && m == Peek:
		return Revocation, nil
	case c.closed && m == Peek: // what was done before keeps its result
		return Closure, nil
	}
	return Nothing, nil
}

// elder returns the oldest of c and its ancestors that has a verdict to be told; nil:
// none has.
func (c *Comm) elder() (eldest *Comm) {
	for a := c; a != nil; a = a.parent {
		if len(a.unreported) > 0 {
			eldest = a
		}
	}
	return eldest
}

// resolved returns what an operation on c is about to end with, if all that is resolved
// could be told; nil: nothing. That c is revoked or closed ends none that waits for a
// verdict, which goes before it.
func (c *Comm) resolved() any {
	f, e := c.oldest(Peek)
	if e != nil {
		return e
	}
	for a := c; a != nil; a = a.parent {
		if a.open && a.corrupted == nil {
			return nil
		}
	}
	if f != Nothing {
		return f
	}
	return nil
}

// Knows says whether the program was told that c is corrupted, or corrupted it. An
// operation begun on a corrupted communicator without that knowledge must not match one
// begun with it.
func (c *Comm) Knows() bool {
	return c.corrupted == nil || c.corrupted.told || c.corrupted.known || c.unwound && !c.unaware
}

// UntoldAbove returns the corruption of an ancestor that the program has not been told, and
// notes that it is: one that is corrupted on its own keeps its error, but ranks that were told
// the ancestor's will not come to repair it (D2).
func (c *Comm) UntoldAbove() *Error {
	for a := c.parent; a != nil; a = a.parent {
		if e := a.corrupted; e != nil && !e.told && !e.known {
			e.told = true
			return e
		}
	}
	return nil
}

// Unaware says that the program, which has corrupted c, was told another error in place of
// that. It is told the corruption as it is at other ranks.
func (c *Comm) Unaware() {
	c.unaware = c.unwound
	if c.corrupted != nil {
		c.corrupted.known = false
	}
}

// Know says that the program was told of the corruption by other means than a look.
func (c *Comm) Know() {
	if c.corrupted != nil {
		c.corrupted.told = true
	}
}

// RevokedUntold says whether c is revoked, goes on to be repaired, and the program was not
// told. No look tells of that: an operation that has ended by it does.
func (c *Comm) RevokedUntold() bool { return c.revoked && !c.toldSo && c.corrupted == nil }

// KnowRevoked says that the program was told that c is revoked, or has revoked it.
func (c *Comm) KnowRevoked() { c.toldSo = true }
