package ledger

import "slices"

// Raise gives every rank a verdict with an error of this rank. It returns nil if it raises
// nothing, because c is broken or closed, this process has died or the job is over. With
// r.Corrupt the rank unwinds (C1), which it does at most once.
func (c *Comm) Raise(r *Raised) *Raised {
	l := c.ledger
	if c.Broken() || c.closed || l.dead || l.ended || r.Corrupt && c.unwound {
		return nil
	}
	r.Comm = c
	c.unwound, c.aware = c.unwound || r.Corrupt, c.aware || r.Corrupt
	c.raised = append(c.raised, r)
	c.open = true
	c.update()
	if l.holds > 0 {
		l.held = append(l.held, r)
	} else {
		c.submit(r)
	}
	return r
}

// submit gives a raised error to the channel. The rank joins the round by that.
func (c *Comm) submit(r *Raised) {
	if c.settling != nil { // it goes to the next round
		c.unsubmitted = append(c.unsubmitted, r)
		return
	}
	c.ledger.tell(Event{Kind: Signalled, Comm: c, Round: c.round, Corrupt: r.Corrupt, Raised: r})
	family := c.consent()
	o := c.ledger.push(Raise, c)
	o.Round, o.Raised, o.Family = c.round, r, family
}

// Told says whether r is resolved, and its verdict may be told, or r has none because the job is
// over.
func (c *Comm) Told(r *Raised) bool { return !slices.Contains(c.raised, r) && !c.isMoving() }

// Lose gives every rank a verdict, because this rank needs a dead process.
func (c *Comm) Lose() {
	if c.Broken() || c.closed || c.ledger.dead || c.ledger.ended {
		return
	}
	c.losing, c.open = true, true
	c.update()
	c.ledger.push(Lose, c)
}

// HasRaised says whether this rank has raised an error on c or an ancestor, and has no verdict yet.
// Operations that it begins then must reach nobody: a peer that does not know of the error would
// match them (T1, C1).
func (c *Comm) HasRaised() bool {
	for a := c; a != nil; a = a.parent {
		if len(a.raised) > 0 && a.corrupted == nil {
			return true
		}
	}
	return false
}

// Unwinding says whether this rank has corrupted c or an ancestor, and has no verdict yet.
func (c *Comm) Unwinding() bool {
	for a := c; a != nil; a = a.parent {
		if a.unwound && a.corrupted == nil {
			return true
		}
	}
	return false
}

// Leave says that the program has ended. The rank attends from now on.
func (l *Ledger) Leave() {
	l.over = true
	l.extra.Add(1)
	l.world.update()
	l.Answer()
}

// End says that the job is over here, so operations end. If it is over everywhere, no round ends
// any more, and none begins. Otherwise the rank still takes part in those of its peers.
func (l *Ledger) End(everywhere bool) {
	l.ended, l.held = everywhere, nil
	for _, c := range l.world.Family() {
		c.open, c.fatal, c.joined, c.losing, c.raised, c.unsubmitted, c.frozen = false, false, false, false, nil, nil, 0
		l.paid(c)
		c.update()
		l.push(Resume, c)
	}
	l.push(Wake, nil)
}

// Go says that the process may end once the peers know what it has raised.
func (l *Ledger) Go() {
	l.leaving = true
	l.leaveWhenTold()
}

func (l *Ledger) leaveWhenTold() {
	if !l.leaving || l.gone {
		return
	}
	for _, c := range l.world.Family() {
		if len(c.raised) > 0 {
			return
		}
	}
	l.gone = true
	l.push(Leave, nil)
}

// Die says that this process has died. It takes no further part.
func (l *Ledger) Die() (first bool) {
	if l.dead {
		return false
	}
	l.dead = true
	l.world.update()
	for _, c := range l.world.Family() {
		l.push(Resume, c)
	}
	l.push(Wake, nil)
	return true
}

// Revive undoes Die, for a test that ends a hang at a rank that is dead.
func (l *Ledger) Revive() { l.dead = false }
