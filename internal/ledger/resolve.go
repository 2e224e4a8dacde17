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
	switch {
	case l.ended:
		return
	case c.settling != nil:
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

// hasSubmitted says whether the channel has an error of this rank that is not resolved. If
// so, this rank has joined already.
func (c *Comm) hasSubmitted() bool {
	return slices.ContainsFunc(c.raised, func(r *Raised) bool { return !slices.Contains(c.ledger.held, r) })
}

// Resolved says that the round is over. Pending operations will end with the verdict. Rank
// is this rank's number in c.
func (c *Comm) Resolved(v *errchan.Verdict, rank int) {
	l := c.ledger
	if c.settling != nil {
		c.later = append(c.later, func() { c.Resolved(v, rank) })
		return
	}
	e := &Error{Comm: c, Verdict: v}
	c.settling, c.everywhere = e, true
	for _, r := range v.Of(rank) {
		if i := slices.IndexFunc(c.raised, func(own *Raised) bool { return bytes.Equal(r.Data, own.Data) }); i >= 0 {
			c.raised[i].Verdict = e
			e.Own = append(e.Own, c.raised[i])
			c.raised = slices.Delete(slices.Clone(c.raised), i, i+1)
		}
	}
	if e.Corrupt() { // no round follows, so this is the verdict of the rest too
		for _, r := range c.raised {
			r.Verdict = e
		}
		c.raised, c.losing = nil, false
	}
	switch {
	case c.corrupted != nil: // by an ancestor's error, which is final
	case e.Corrupt():
		c.corrupted = e
	case !c.closed || c.child != nil: // looks at derived communicators find it here
		c.untold = append(c.untold, e)
	}
	l.Face(e)
	l.last, c.previous = e, e
	c.moving++
	c.claim()
	kind := Resolved
	if e.Corrupt() {
		kind = Corrupted
	}
	l.tell(Event{Kind: kind, Comm: c, Round: v.Round, Corrupt: e.Corrupt(), Error: e})
	if e.Corrupt() {
		c.interruptFamily(true)
	}
	if len(v.Settled) == 0 {
		c.Settled()
		return
	}
	o := l.push(Complete, c)
	o.Family, o.Error = c.Family(), e
	c.update()
}

// Settled follows Complete, or Resolved if the verdict has no agreements: those decided before
// the verdict are complete. Now the family moves to the next epoch.
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

// lost says for each of c's family whether one of its members has died without consenting to
// the verdict. A decision that this member had may be in the verdict of another round. The
// result is nil if all have consented.
func (c *Comm) lost(e *Error, family []*Comm) (lost []bool) {
	if len(e.Verdict.Dead) == 0 {
		return nil
	}
	for _, d := range family {
		lost = append(lost, slices.ContainsFunc(e.Verdict.Dead, func(r int) bool { return d.has(c.worldRank(r)) }))
	}
	return lost
}

// bequeath gives a corruption of c to the communicators derived from c. One of them is
// corrupted too if a member has unwound or is dead. Otherwise its next look finds the error,
// at itself or at an ancestor where the program has not been told of the error.
func (c *Comm) bequeath(e *Error, derived []*Comm) {
	var gone []int // ranks in the world
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
		case d.parent == c || d.parent.corrupted != nil || d.parent.closed: // the parent will not report it
			d.untold = append(d.untold, e)
			d.claim()
		}
		d.update()
	}
}

// Moved follows Advance. From now on looks may find the error. If the program were told
// earlier, it could begin operations in the old epoch, and the same error would end them.
func (c *Comm) Moved() {
	l := c.ledger
	c.moving--
	c.endStale()
	c.update()
	l.push(Wake, nil)
	for d := c; d != nil && c.corrupted != nil; d = c.inFamily(d) {
		if d.corrupted != nil {
			l.push(Resume, d)
		}
	}
	c.forget()
	l.leaveWhenTold()
}

// Fail corrupts c's family at this rank alone: the transport has failed, so no peer can be told.
// The caller sets the Error's Face. It takes the place of an older corruption: to repair that needs
// others.
func (c *Comm) Fail() *Error {
	e := &Error{Comm: c}
	for _, d := range c.Family() {
		if (d.corrupted == nil || d.corrupted.Verdict != nil) && !d.closed {
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
	if c.revoked { // not if c is closed: operations begun before may still be pending
		return false
	}
	c.revoked = true
	c.revoking = true
	c.update()
	c.ledger.tell(Event{Kind: Revoked, Comm: c, By: by, Corrupt: true})
	return true
}

// RevokeDone lets looks find that c is revoked.
func (c *Comm) RevokeDone() {
	c.revoking = false
	c.update()
	c.ledger.push(Wake, nil)
	for s := c.scopes; s != nil; s = s.next {
		s.interrupt(true)
	}
	c.forget()
}
