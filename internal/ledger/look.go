package ledger

// A Finding is the result of a look. A Verdict comes with its Error.
type Finding uint8

const (
	// Nothing says that there is nothing to tell.
	Nothing Finding = iota
	// Verdict is the oldest verdict that no look has taken, or a corruption, which each look
	// finds.
	Verdict
	// Revocation says that the communicator is revoked. No look takes it: operations that
	// were pending have ended with it, and operations that were done keep their results.
	Revocation
	// Closure says that the communicator is closed.
	Closure
)

// NeedsLook says whether a look may find something. It is one load, and needs no
// lock.
func (c *Comm) NeedsLook() bool { return c.needsLook.Load() }

// disturbs says whether c has an error that concerns the communicators derived from it. That
// c can't be used any more does not concern them.
func (c *Comm) disturbs() bool {
	return c.open && c.corrupted == nil || c.moving > 0 || len(c.untold) > 0
}

// Disturbed says whether c, or a communicator that it is derived from, has an error that is under
// way or was not told.
func (c *Comm) Disturbed() bool {
	for a := c; a != nil; a = a.parent {
		if a.disturbs() {
			return true
		}
	}
	return false
}

// update sets needsLook of c's family after a change of c. Thousands may be derived from c, and
// most changes do not concern them.
func (c *Comm) update() {
	if c.parent != nil {
		c.updateBelow(c.parent.disturbing)
	} else {
		c.updateBelow(c.ledger.dead || c.ledger.over)
	}
}

func (c *Comm) updateBelow(above bool) {
	disturbing := above || c.disturbs()
	c.needsLook.Store(disturbing || c.corrupted != nil || c.revoked || c.closed)
	if disturbing == c.disturbing {
		return
	}
	c.disturbing = disturbing
	for d := c.child; d != nil; d = d.next {
		d.updateBelow(disturbing)
	}
}

// A Mode says what a look is for.
type Mode uint8

const (
	// Peek takes nothing. It also finds verdicts that can't be told yet.
	Peek Mode = iota
	// Take is the mode of Wait and Test: the verdict that it finds is told.
	Take
	// Read is Take that ends nothing, for a goroutine that has outlived its scope.
	Read
	// TakeToRepair is the mode of an operation that works on a broken communicator: it
	// does not find that c itself is broken.
	TakeToRepair
	// PeekToRepair is Peek for such an operation, before it begins.
	PeekToRepair
	// TakeToClose is the mode of Close: a corruption of c itself that it finds is not told to the
	// program. That of an ancestor is.
	TakeToClose
)

func (m Mode) takes() bool { return m != Peek && m != PeekToRepair }

// peek returns the mode that finds what m finds, and takes nothing.
func (m Mode) peek() Mode {
	if m.repairs() {
		return PeekToRepair
	}
	return Peek
}

func (m Mode) repairs() bool { return m == TakeToRepair || m == PeekToRepair }

// Look looks for errors of c, for a Wait, Test or Err of the program. It finds the oldest
// verdict that is not over, of the oldest ancestor first. Where no Try is running, a look that
// takes it ends it (T4). Pending says that an error is
// noticed and not resolved, or resolved while pending operations have not ended. In this
// case a caller that finds nothing may wait for the next Wake.
func (c *Comm) Look(m Mode) (f Finding, e *Error, pending bool) {
	moving := c.isMoving()
	if moving && m.takes() {
		return Nothing, nil, true
	}
	f, e = c.oldest(m)
	return f, e, moving || c.isOpen()
}

// isMoving says whether a verdict on c or an ancestor, or that c is revoked, can't be told yet.
func (c *Comm) isMoving() bool {
	if c.revoking {
		return true
	}
	for a := c; a != nil; a = a.parent {
		if a.moving > 0 {
			return true
		}
	}
	return c.isAhead()
}

// isAhead says whether the oldest error of c or an ancestor can't be told before the round of an
// ancestor has ended, because it is early.
func (c *Comm) isAhead() bool {
	for a := c; a != nil; a = a.parent {
		if a.isEarly() && a.parent.elder() == nil {
			return true
		}
	}
	return false
}

// isOpen says whether a round is open on c or an ancestor.
func (c *Comm) isOpen() bool {
	for a := c; a != nil; a = a.parent {
		if a.open && a.corrupted == nil {
			return true
		}
	}
	return false
}

func (c *Comm) oldest(m Mode) (Finding, *Error) {
	if c.corrupted != nil && c.corrupted.told && !m.repairs() {
		return Verdict, c.corrupted // from now on nothing else is found (C4)
	}
	if from := c.elder(); from != nil {
		e := from.untold[0]
		if m.takes() && m != Read && !from.tried() { // otherwise the end of that Try ends it
			from.end()
		}
		return Verdict, e
	}
	switch {
	case m.repairs():
	case c.corrupted != nil:
		if m == Take || m == TakeToClose && c.corrupted.Comm != c {
			c.corrupted.tell()
		}
		return Verdict, c.corrupted
	case c.revoked && m == Peek:
		return Revocation, nil
	case c.closed && m == Peek: // operations that were done before keep their results
		return Closure, nil
	}
	return Nothing, nil
}

// elder returns the oldest of c and its ancestors that has a verdict that is not over, or nil.
func (c *Comm) elder() (eldest *Comm) {
	for a := c; a != nil; a = a.parent {
		if len(a.untold) > 0 {
			eldest = a
		}
	}
	return eldest
}

// resolved returns what ends an operation on c as soon as all resolved verdicts can be told,
// or nil. If a round is open, its verdict goes before the error that c is revoked or closed.
func (c *Comm) resolved() any {
	f, e := c.oldest(Peek)
	if e != nil {
		return e
	}
	if f != Nothing && !c.isOpen() {
		return f
	}
	return nil
}

// Knows says whether the program was told that c is corrupted, or corrupted it. It is true
// if c is not corrupted. An operation begun on a corrupted communicator without that
// knowledge must not match one begun with it.
func (c *Comm) Knows() bool {
	return c.corrupted == nil || c.corrupted.told || c.aware || c.corrupted.Comm.aware
}

// UntoldAbove returns the corruption of an ancestor that the program has not been told, and
// notes that it now is. If c is corrupted on its own, it keeps its own error, but ranks that
// were told the ancestor's will not come to repair c (D2).
func (c *Comm) UntoldAbove() *Error {
	for a := c.parent; a != nil; a = a.parent {
		if e := a.corrupted; e != nil && !e.told && !e.Comm.aware {
			e.tell()
			return e
		}
	}
	return nil
}

// Know says that the program was told of the corruption by other means than a look.
func (c *Comm) Know() {
	if c.corrupted != nil {
		c.corrupted.tell()
	}
}

// tell notes that the program was told of the corruption e, on any communicator that e has
// corrupted. Nothing that came before is told there any more (C4).
func (e *Error) tell() {
	if e.told {
		return
	}
	e.told = true
	for d := e.Comm; d != nil; d = e.Comm.inFamily(d) {
		if d.corrupted == e {
			d.untold = nil
			d.update()
		}
	}
}
