package ledger

import "slices"

// IsOver says whether e is a propagated error that is over at this rank. It may be nil.
func (e *Error) IsOver() bool { return e != nil && e.told && !e.Corrupt() }

// IsPast says whether e is a propagated error of c itself that is over.
func (e *Error) IsPast(c *Comm) bool { return e.Comm == c && e.IsOver() }

// claim gives the oldest error of c that is not over to the Try calls that own it (T1). It
// belongs to those on c or, if there are none, to those on communicators derived from c.
// In each nest it belongs to the Try at the place where it was raised.
func (c *Comm) claim() {
	if len(c.untold) == 0 || c.owners > 0 || c.isStale() || c.isEarly() {
		return
	}
	e, tried := c.untold[0], false
	for s := c.scopes; s != nil; s = s.next {
		tried = tried || !s.guard
		if owner := s.at(e.Place); owner != nil && !s.guard && s.inner == 0 {
			c.give(e, s, owner)
		}
	}
	for d := c; d != nil; d = c.inFamily(d) {
		for s := d.scopes; s != nil; s = s.next {
			switch {
			case s.guard && !e.Corrupt():
			case !s.guard && !tried && s.inner == 0:
				c.give(e, s, s.at(nil))
			case s.err == nil && (s.guard || d != c && c.owners > 0 && !s.encloses(e)):
				s.err = e
				s.interrupt(true)
			}
		}
	}
}

// takeOver is called before a Try on c begins inside outside. If c's oldest error was raised in a
// Try on c, those around on derived communicators have owned it only because this rank had not come
// to one (T1). Now that one does.
func (c *Comm) takeOver(outside *Scope) {
	if c.Path() != nil || len(c.untold) == 0 || len(c.untold[0].Place) == 0 {
		return
	}
	for o := outside; o != nil; o = o.outside {
		switch {
		case o.closed || o.err != c.untold[0]:
			continue
		case o.from == c:
			c.owners--
		}
		o.err, o.from = nil, nil
	}
	c.endStale() // it may be over but for those Trys
}

// MadeInside says whether c was made inside a Try that owns e, an error of another communicator.
func (c *Comm) MadeInside(e *Error) bool {
	for d := e.Comm; d != nil && c != e.Comm; d = e.Comm.inFamily(d) {
		for s := d.scopes; s != nil; s = s.next {
			if s.err == e && s.from == e.Comm && s.number < c.number {
				return true
			}
		}
	}
	return false
}

// Encloses says whether c was made while s was open.
func (s *Scope) Encloses(c *Comm) bool { return s.number < c.number }

// encloses says whether a Try inside s owns e. Then e is not the end of s.
func (s *Scope) encloses(e *Error) bool {
	for t := e.Comm.scopes; t != nil; t = t.next {
		for o := t.outside; t.err == e && t.from == e.Comm && o != nil; o = o.outside {
			if o == s {
				return true
			}
		}
	}
	return false
}

// give gives e to owner, and to those inside of it that enclose s.
func (c *Comm) give(e *Error, s, owner *Scope) {
	for ; s != owner; s = s.outerTry() {
		if s.err == nil {
			s.err = e
			s.interrupt(true)
		}
	}
	if owner.err == nil {
		owner.err, owner.from = e, c
		owner.interrupt(true)
		c.owners++
	}
}

// at returns the Try that owns an error that was raised at a place: s, which has no Try
// inside, or one around it. It returns nil if the place is a Try inside s, which this rank
// has not come to, or has left.
func (s *Scope) at(place []int) *Scope {
	if n := len(s.path); len(place) > n && slices.Equal(place[:n], s.path) {
		return nil
	}
	outermost := s
	for t := s; t != nil; t = t.outerTry() {
		if slices.Equal(t.path, place) {
			return t
		}
		outermost = t
	}
	if len(place) == 0 { // in no Try
		return outermost
	}
	return s
}

// tried says whether a Try is running on c or on a communicator that is derived from it.
func (c *Comm) tried() bool {
	for d := c; d != nil; d = c.inFamily(d) {
		if d.Path() != nil {
			return true
		}
	}
	return false
}

// end ends c's oldest error that is not over: the program was told of it.
func (c *Comm) end() {
	c.untold[0].told = true
	c.untold = c.untold[1:]
	for d := c; d != nil; d = c.inFamily(d) {
		d.told, d.tries = d.told+1, 0
	}
	c.update()
	for d := c; d != nil; d = c.inFamily(d) {
		d.claim()
	}
	c.ledger.push(Wake, nil)
}

// endBelow says that s, a Try, ends with an error at all ranks. That is the end of an era on
// communicators derived from s's, unless s is inside of a Try there: what was raised there inside
// of s is over, because some ranks were told of it inside, and others were not. It may come later.
func (s *Scope) endBelow() {
	for d := s.comm.inFamily(s.comm); d != nil; d = s.comm.inFamily(d) {
		if s.isInside(d) {
			continue
		}
		d.era++
		d.endStale()
		d.claim()
	}
}

// isInside says whether s is inside of a Try on c.
func (s *Scope) isInside(c *Comm) bool {
	o := s.outside
	for o != nil && (o.comm != c || o.guard || o.closed) {
		o = o.outside
	}
	return o != nil
}

// endStale ends errors of an earlier era.
func (c *Comm) endStale() {
	for c.owners == 0 && c.isStale() {
		c.end()
	}
}

func (c *Comm) isStale() bool {
	return len(c.untold) > 0 && !c.untold[0].Corrupt() && c.untold[0].Era >= 0 && c.untold[0].Era < c.era
}

// isEarly says whether c's oldest error is of an era that this rank has not come to: the error of
// the ancestor that ends its own is on its way.
func (c *Comm) isEarly() bool {
	return len(c.untold) > 0 && !c.untold[0].Corrupt() && c.untold[0].Era > c.era && c.parent != nil && c.parent.Disturbed()
}
