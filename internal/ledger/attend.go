package ledger

import "slices"

// When a rank joins a round (P2).
//
// All errors that ranks raise before they know of each other's belong in one verdict. A
// rank knows what its program was told; a notice that the library has received does not
// count. By joining a round a rank says that it has nothing more to raise in it. So it joins
// when its program is inside an operation that will tell it how the round ends, that is,
// when the program waits or looks. While the program computes the rank owes the join, until
// the next operation. Operations that will not tell do not count: see Attend, and Vote.
//
// The rank then joins the rounds of all its communicators, no matter on which of them it
// waits (D2), with one exception. A wait on a communicator whose own round is open will end
// with that error, and the program may pass the error on to an ancestor. The rank therefore
// does not join the ancestors' rounds because of this wait. No rank waits forever because of
// that: rounds of derived communicators are always joined, so the deepest open round ends,
// then the one above it, and so on. If a member never made its side of the derived
// communicator, the round might not end, so the exception is only for communicators that all
// members have made.

// BeginWait says that a goroutine of the rank begins to wait on c. It needs no lock. First
// is passed on to EndWait. Due says that Attend must be called, with the lock.
func (l *Ledger) BeginWait(c *Comm) (first, due bool) {
	first = l.inside.CompareAndSwap(nil, c)
	if !first {
		l.extra.Add(1)
	}
	return first, l.owing.Load() > 0 // read after inside is set: Noticed sets owing, then reads inside
}

// EndWait ends what BeginWait began. It needs no lock. A goroutine that is about to tell
// its program of an error ends its Wait before it takes the error: see Attend.
func (l *Ledger) EndWait(first bool) {
	if first {
		l.inside.Store(nil)
	} else {
		l.extra.Add(-1)
	}
}

// Waits says whether the goroutine waits that was the first to begin. It needs no lock.
func (l *Ledger) Waits() bool { return l.inside.Load() != nil }

// Attends says whether the rank is inside an operation, for any reason. It needs no lock.
func (l *Ledger) Attends() bool { return l.inside.Load() != nil || l.extra.Load() > 0 }

// Watch adds n to the number of channels that are watched instead of waited for. The
// rank is attending while there are any. Watch needs no lock. Due says that Answer must
// be called.
func (l *Ledger) Watch(n int) (due bool) {
	l.extra.Add(int32(n))
	return n > 0 && l.owing.Load() > 0
}

// Attend joins the rounds that a rank owes a join when it enters an operation on c.
func (l *Ledger) Attend(c *Comm) {
	// An operation that is about to end with an error does not count. The program will be
	// told of that error, but not of a later one, and what it raises next belongs with the
	// later one. That c is closed ends no operation that was begun before.
	switch {
	case l.holds > 0:
		return
	case c.isAhead():
		c.joinAbove()
		return
	}
	if r := c.resolved(); r != nil && r != Closure {
		return
	}
	bound := c.bound()
	for _, o := range slices.Clone(l.owed) {
		if bound == nil || bound == o || !bound.DerivedFrom(o) {
			o.join()
		}
	}
}

// bound returns the communicator whose error will end a wait on c: of c and its ancestors,
// the deepest that has an open round and that all members have made. It is nil if there is
// none.
func (c *Comm) bound() *Comm {
	for a := c; a != nil; a = a.parent {
		if a.open && a.corrupted == nil && a.everywhere {
			return a
		}
	}
	return nil
}

// Answer joins all rounds that the rank owes a join, because the program has looked for errors of c
// in mode m and found none. If there is one by now, the program will be told of that one, and not
// of a later one: see Attend.
func (c *Comm) Answer(m Mode) {
	if _, e := c.oldest(m.peek()); e == nil {
		c.ledger.Answer()
	} else if c.isAhead() && c.ledger.holds == 0 && !c.ledger.dead {
		c.joinAbove()
	}
}

// joinAbove joins the rounds of c's ancestors that the rank owes a join. They have to end before an
// error of c that is early can be told.
func (c *Comm) joinAbove() {
	for _, o := range slices.Clone(c.ledger.owed) {
		if c != o && c.DerivedFrom(o) {
			o.join()
		}
	}
}

// Answer joins all rounds that the rank owes a join: its program waits in several places.
func (l *Ledger) Answer() {
	if l.holds > 0 || l.dead {
		return
	}
	for len(l.owed) > 0 {
		l.owed[0].join()
	}
}

// attend joins the rounds that the rank owes a join, as far as it is inside operations.
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
		l.owing.Store(int32(len(l.owed))) // before inside is read: see BeginWait
	}
	l.attend()
}

// paid notes that c has no round that this rank owes a join.
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

// consent notes that this rank joins c's round, unless it has joined, and returns the
// family. From then on nothing is agreed in the family. The earlier decisions go with the
// consent into the verdict, so all ranks have them or none does (H5). In open votes of the
// family this rank votes no, because its TryAll will end with the verdict.
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
