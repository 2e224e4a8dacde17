package ledger

import "slices"

// When a rank joins a round (P2).
//
// All that ranks raise before they know of each other's errors belongs into one
// verdict. What a rank knows is what its program was told: a notice that the library
// has taken is nothing. So a rank joins a round, which says that it has nothing more
// to raise, when its program is inside an operation and will be told how the round
// ends: it waits, or looks. While it computes it owes the join, until its next
// operation. An operation that will not tell does not count: see Attend, and Vote.
//
// It joins the rounds of all its communicators then, whichever it waits on (D2), but
// for one case. A wait on a communicator whose own round is open is bound to end with
// that error, which the program may pass on to an ancestor: so the rank does not join
// the ancestors' rounds because of this wait. That keeps nobody waiting for ever: the
// rounds of descendants are always joined, so the deepest open round ends, and then
// those above it do. It would not if a member never made its side of the descendant, so
// this is for those that all have.

// Enter says that a goroutine of the rank begins to wait on c. It needs no lock. First
// is passed on to Leave. Due says that Attend must be called, with the lock.
func (l *Ledger) Enter(c *Comm) (first, due bool) {
	first = l.inside.CompareAndSwap(nil, c)
	if !first {
		l.extra.Add(1)
	}
	return first, l.owing.Load() > 0 // read after inside is set: Noticed does both the other way round
}

// Leave ends what Enter began. It needs no lock. A goroutine that is about to tell
// its program of an error leaves before it takes the error: see Attend.
func (l *Ledger) Leave(first bool) {
	if first {
		l.inside.Store(nil)
	} else {
		l.extra.Add(-1)
	}
}

// Watch adds n to the number of channels that are watched instead of waited for. The
// rank is attending while there are any. Watch needs no lock. Due says that Answer must
// be called.
func (l *Ledger) Watch(n int) (due bool) {
	l.extra.Add(int32(n))
	return n > 0 && l.owing.Load() > 0
}

// Attend joins the rounds that a rank owes a join when it enters an operation on c.
func (l *Ledger) Attend(c *Comm) {
	// An operation that is about to end with an error does not count: the program will
	// have been told of that one, but knows of no later one, and what it raises next
	// belongs with that.
	if l.holds > 0 || c.resolved() != nil {
		return
	}
	bound := c.bound()
	for _, o := range slices.Clone(l.owed) {
		if bound == nil || bound == o || !bound.DerivedFrom(o) {
			o.join()
		}
	}
}

// bound returns the communicator with whose error a wait on c will end: the deepest
// in its line with an open round, which will end. It is nil if none has one.
func (c *Comm) bound() *Comm {
	for a := c; a != nil; a = a.parent {
		if a.open && a.corrupted == nil && a.everywhere {
			return a
		}
	}
	return nil
}

// Answer joins all rounds that the rank owes a join: its program has looked for errors,
// or waits in several places.
func (l *Ledger) Answer() {
	if l.holds > 0 || l.dead {
		return
	}
	for len(l.owed) > 0 {
		l.owed[0].join()
	}
}

// attend joins what is owed as far as the rank is inside operations.
func (l *Ledger) attend() {
	if l.extra.Load() > 0 {
		l.Answer()
	} else if c := l.inside.Load(); c != nil {
		l.Attend(c)
	}
}

// owe notes that c has a round that this rank has not joined, and joins if it
// attends.
func (l *Ledger) owe(c *Comm) {
	if !slices.Contains(l.owed, c) {
		l.owed = append(l.owed, c)
		l.owing.Store(int32(len(l.owed))) // before inside is read: see Enter
	}
	l.attend()
}

// paid notes that c has no such round.
func (l *Ledger) paid(c *Comm) {
	if i := slices.Index(l.owed, c); i >= 0 {
		l.owed = slices.Delete(l.owed, i, i+1)
		l.owing.Store(int32(len(l.owed)))
	}
}

// join consents to the end of c's round.
func (c *Comm) join() {
	l := c.ledger
	if family := c.consent(); family != nil {
		o := l.push(Join, c)
		o.Round, o.Family = c.round, family
	}
}

// consent notes that this rank joins c's round, unless it has. From then on nothing is
// agreed in the family, which it returns, and what has been agreed goes with the
// consent: the verdict has it, and so all ranks have it or none (H5). Votes of the
// family that are open get this rank's no, because it will leave them with the verdict.
func (c *Comm) consent() (family []*Comm) {
	l := c.ledger
	l.paid(c)
	if !c.open || c.joined {
		return nil
	}
	c.joined = true
	family = c.Family()
	for _, d := range family {
		d.frozen++
		for _, v := range d.votes {
			v.Withdraw()
		}
	}
	l.tell(Event{Kind: Joined, Comm: c, Round: c.round})
	return family
}
