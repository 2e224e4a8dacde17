package ledger

import (
	"bytes"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// Noticed says that a round is open, as this rank learned from rank by. Corrupt says
// that its verdict will be final. It may come a second time for an open round, when
// corrupt is news; then contexts of Guard end as well.
func (c *Comm) Noticed(round uint64, by int, corrupt bool) {
	l := c.ledger
	if c.settling != nil {
		c.later = append(c.later, func() { c.Noticed(round, by, corrupt) })
		return
	}
	c.round, c.fatal = round, c.fatal || corrupt
	if !c.open {
		c.open = true
		c.update()
	}
	l.tell(Event{Kind: Noticed, Comm: c, Round: round, By: by, Corrupt: corrupt})
	c.interruptFamily(corrupt)
	switch {
	case c.joined:
	case c.closed || c.hasSubmitted():
		c.join()
	default:
		l.owe(c)
	}
}

// hasSubmitted says whether the channel has something of this rank that is not
// resolved: then it has joined already.
func (c *Comm) hasSubmitted() bool {
	return slices.ContainsFunc(c.raised, func(r *Raised) bool { return !slices.Contains(c.ledger.held, r) })
}

// Resolved says that the round is over. Pending operations will end with the verdict.
// Rank is this one's.
func (c *Comm) Resolved(v *errchan.Verdict, rank int) {
	l := c.ledger
	if c.settling != nil {
		c.later = append(c.later, func() { c.Resolved(v, rank) })
		return
	}
	e := &Error{Comm: c, Verdict: v}
	c.settling, c.everywhere = e, true
	for _, r := range v.Reports {
		if i := slices.IndexFunc(c.raised, func(own *Raised) bool { return r.Rank == rank && bytes.Equal(r.Data, own.Data) }); i >= 0 {
			c.raised[i].Verdict = e
			e.Own = append(e.Own, c.raised[i])
			c.raised = slices.Delete(slices.Clone(c.raised), i, i+1)
		}
	}
	if e.Corrupt() { // no round follows, so the rest gets no verdict but this
		for _, r := range c.raised {
			r.Verdict = e
		}
		c.raised, c.losing = nil, false
	}
	switch {
	case c.corrupted != nil: // by an ancestor's error, which is final
	case e.Corrupt():
		c.corrupted, e.known = e, c.unwound && !c.unaware
	case !c.closed || c.child != nil: // what is derived from c finds it here
		c.unreported = append(c.unreported, e)
	}
	e.Face = l.Face(e)
	l.last = e
	c.moving++
	kind := Resolved
	if e.Corrupt() {
		kind = Corrupted
	}
	l.tell(Event{Kind: kind, Comm: c, Round: v.Round, Corrupt: e.Corrupt(), Error: e})
	if e.Corrupt() {
		c.interruptFamily(true)
	}
	var settled []*Comm
	if len(v.Settled) > 0 {
		settled = c.Family()
	}
	o := l.push(Complete, c)
	o.Family, o.Error = settled, e
	c.update()
}

// Settled follows Complete: the agreements decided before the verdict are complete. Now
// the family moves to the next epoch.
func (c *Comm) Settled() {
	l, e := c.ledger, c.settling
	family := c.Family()
	for _, d := range family {
		if c.joined {
			d.frozen--
		}
		d.epoch = d.epoch.Next(c.generation)
	}
	frozen := c.isFrozen()
	for _, d := range family[1:] {
		frozen = append(frozen, d.frozen > 0)
	}
	lost := c.lost(e, family)
	if e.Corrupt() {
		c.bequeath(e, family[1:])
	}
	c.joined, c.fatal = false, false
	c.open = len(c.raised) > 0 || c.losing
	c.round = e.Verdict.Round + 1
	l.paid(c)
	c.update()
	l.tell(Event{Kind: Advanced, Comm: c, Round: e.Verdict.Round, Corrupt: e.Corrupt()})
	o := l.push(Advance, c)
	o.Family, o.Frozen, o.Lost, o.Generation, o.Error = family, frozen, lost, c.generation, e
	c.settling = nil
	for _, r := range c.unsubmitted {
		c.submit(r)
	}
	c.unsubmitted = nil
	for len(c.later) > 0 && c.settling == nil {
		next := c.later[0]
		c.later = c.later[1:]
		next()
	}
}

// lost says of each of c's family whether the verdict is without one of its members, which
// has died: what that one had decided, the verdict of another round may have. It is nil if
// all have consented.
func (c *Comm) lost(e *Error, family []*Comm) (lost []bool) {
	if len(e.Verdict.Dead) == 0 {
		return nil
	}
	for _, d := range family {
		lost = append(lost, slices.ContainsFunc(e.Verdict.Dead, func(r int) bool { return d.has(c.worldRank(r)) }))
	}
	return lost
}

// bequeath gives a corruption to what is derived from c: where one of the members
// has unwound or is dead, it is corrupted as well; else its next look finds the
// error, there or at an ancestor that has it to report.
func (c *Comm) bequeath(e *Error, derived []*Comm) {
	var gone []int // in the world
	if e.Verdict != nil {
		for _, r := range e.Verdict.Dead {
			gone = append(gone, c.worldRank(r))
		}
		for _, r := range e.Verdict.Reports {
			if r.Corrupt {
				gone = append(gone, c.worldRank(r.Rank))
			}
		}
	}
	for _, d := range derived {
		switch {
		case d.corrupted != nil || d.closed:
		case e.Verdict == nil || slices.ContainsFunc(gone, d.has):
			d.corrupted = e
		case d.parent == c || d.parent.corrupted != nil || d.parent.closed: // which tells nothing
			d.unreported = append(d.unreported, e)
		}
		d.update()
	}
}

// Moved follows Advance. From now on looks may find the error. A program told earlier
// could begin operations in the old epoch, which would end with the same error.
func (c *Comm) Moved() {
	l := c.ledger
	c.moving--
	c.update()
	l.push(Wake, nil)
	for d := c; d != nil; d = c.inFamily(d) {
		if d.corrupted != nil {
			l.push(Resume, d)
		}
	}
	c.forget()
	l.leaveWhenTold()
}

// Fail corrupts c and what is derived from it at this rank alone: no messages move any
// more, so no peer can be told. The caller sets the Error's Face.
func (c *Comm) Fail() *Error {
	e := &Error{Comm: c}
	for _, d := range c.Family() {
		if d.corrupted == nil && !d.closed {
			d.corrupted = e
		}
		for _, r := range d.raised {
			r.Verdict = e
		}
		d.raised, d.open, d.fatal, d.joined, d.losing, d.frozen = nil, false, false, false, false, 0
		c.ledger.paid(d)
		d.update()
		c.ledger.push(Resume, d)
	}
	c.ledger.push(Wake, nil)
	c.ledger.leaveWhenTold()
	return e
}

// Revoked says that c is revoked, as this rank learned from rank by. It returns false
// if that was known. Otherwise the caller ends pending operations, and then calls
// RevokeDone.
func (c *Comm) Revoked(by int) (first bool) {
	if c.revoked { // if it is closed, operations that were begun before may still be pending
		return false
	}
	c.revoked = true
	c.moving++ // no look finds it before what is pending has ended (F4)
	c.update()
	c.ledger.tell(Event{Kind: Revoked, Comm: c, By: by, Corrupt: true})
	return true
}

// RevokeDone lets looks find that c is revoked.
func (c *Comm) RevokeDone() {
	c.moving--
	c.update()
	c.ledger.push(Wake, nil)
	for s := c.scopes; s != nil; s = s.next {
		s.interrupt(true)
	}
	c.forget()
}
