package ledger

import "slices"

// A Scope is a running call of Try or Guard.
//
// An error ends the contexts of the scopes on its communicator and on those derived
// from it, so that a rank that computes learns of it (P8). A propagated error belongs to
// one Try in each nest of Try calls (T1), and is the state of that Try and of the
// communicator until the Try has closed. A corruption is final, and ends all scopes.
type Scope struct {
	Owner any // the caller's

	comm  *Comm
	guard bool
	// outside is the next scope outside, around that on the same communicator.
	outside, around *Scope
	// Of a Try: inner counts the running Try calls directly inside it, entered counts all
	// Try calls directly inside it so far.
	inner   int
	entered int
	path    []int

	number int // of Ledger.made
	ended  bool
	closed bool   // the scope is over
	err    *Error // what the scope returns, once it is known
	from   *Comm  // of a Try that owns err: where it is untold; else nil

	next, prev *Scope // on the same communicator
}

// Open begins a scope inside outside, which may be on any communicator.
func (c *Comm) Open(outside *Scope, guard bool, owner any) *Scope {
	s := &Scope{Owner: owner, comm: c, guard: guard, outside: outside, around: outside, next: c.scopes}
	c.ledger.made++
	s.number = c.ledger.made
	for s.around != nil && (s.around.comm != c || s.around.closed) {
		s.around = s.around.outside
	}
	switch t := s.outerTry(); {
	case t == nil && guard:
	case t == nil:
		c.takeOver(outside)
		c.tries++
		s.path = []int{c.era, c.told, c.tries}
	case guard:
		s.path = t.path
	default:
		t.inner++
		t.entered++
		s.path = append(slices.Clip(t.path), t.entered)
	}
	if c.scopes != nil {
		c.scopes.prev = s
	}
	c.scopes = s
	s.catchUp()
	return s
}

// Path identifies the Try call by its place in the program, which is the same at all ranks that run
// the same program. It has the era of the communicator, the number of verdicts that were over
// before the outermost Try on the communicator, the number of that Try since the last of them, and
// for each level below the number of the inner Try in the one around it. Numbers of calls begin at
// 1.
func (s *Scope) Path() []int { return s.path }

// Path returns the path of the newest Try on c, in any goroutine; nil: none is running.
func (c *Comm) Path() []int {
	for s := c.scopes; s != nil; s = s.next {
		if !s.guard {
			return s.path
		}
	}
	return nil
}

// Ended says whether an error has ended the scope's context.
func (s *Scope) Ended() bool { return s.ended }

// Closed says whether the scope is over.
func (s *Scope) Closed() bool { return s.closed }

// Over returns the error with which the scope is over, or nil.
func (s *Scope) Over() *Error {
	switch {
	case !s.closed || s.err == nil && !s.ended:
		return nil
	case s.err != nil:
		return s.err
	}
	return s.comm.corrupted
}

// catchUp ends the context for errors that came before the scope was opened, or while a Try
// inside it was to report them.
func (s *Scope) catchUp() {
	if s.comm.Broken() {
		s.interrupt(true)
	}
	for a := s.comm; a != nil; a = a.parent {
		if !a.disturbs() {
			continue
		}
		s.interrupt(a.fatal || slices.ContainsFunc(a.untold, (*Error).Corrupt))
		a.claim()
		if len(a.untold) > 0 && s.from == nil {
			if e := a.untold[0]; a.owners > 0 && !s.guard && !s.encloses(e) || e.Corrupt() {
				s.err = e
			}
		}
	}
}

// interrupt ends the context because of a peer's error. If the error is no corruption and
// belongs to no Try so far, the context of a Guard does not end, nor that of a Try with
// another Try inside.
func (s *Scope) interrupt(all bool) {
	if s.ended || !all && (s.guard || s.inner > 0) {
		return
	}
	s.ended = true
	s.comm.ledger.push(Interrupt, s.comm).Scope = s
}

func (c *Comm) interruptFamily(corrupt bool) {
	for d := c; d != nil; d = c.inFamily(d) {
		for s := d.scopes; s != nil; s = s.next {
			s.interrupt(corrupt)
		}
	}
}

// A Step is what the end of a scope does next.
type Step uint8

// The steps.
const (
	Return Step = iota // the error or, if there is none, what the function has returned
	Signal             // this rank's own error, then ask again
	Await              // a change, then ask again
)

// Leave says what the end of a Try does when its function has returned, own: with an error
// of this rank, which nobody was told. An error that came before is the scope's (T2). This
// rank's own is signalled if this rank has not consented to the end of a round (P2).
func (s *Scope) Leave(own bool) (e *Error, next Step) {
	c := s.comm
	if c.isMoving() {
		return nil, Await
	}
	if s.err == nil || s.from != nil { // an ancestor's may be older
		_, e = c.oldest(Peek)
	}
	if e == nil {
		e = s.err
	}
	switch {
	case e != nil && e == c.corrupted:
		e.tell()
		s.take(e)
		return e, Return
	case e == nil && c.Unwinding() && c.open: // the corruption that this rank has raised is the scope's
		return nil, Await
	case e != nil && s.at(e.Place) == nil && len(c.untold) > 0 && c.untold[0] == e && c.owners == 0:
		c.end()         // the others have it in a Try inside, which this rank does not come to any more
		if c.isLate() { // they have raised it again
			return s.Leave(own)
		}
		return e, Signal
	case e != nil:
		c.aware = false // of a corruption: the program is told of an older error
		s.take(e)
		return e, Return
	case own && !c.isLate():
		return nil, Signal
	case c.isOpen():
		return nil, Await
	}
	return nil, Return
}

// take makes e, an ancestor's perhaps, the error that the scope returns.
func (s *Scope) take(e *Error) {
	if s.err == e {
		return
	}
	if s.from != nil {
		s.from.owners--
	}
	s.err, s.from = e, nil
	if a := e.Comm; a != s.comm && a.Path() == nil && len(a.untold) > 0 && a.untold[0] == e {
		s.from = a
		a.owners++
	}
}

// Failure returns the error that has ended the scope's context. It returns nil if that
// error was another scope's, or with pending, if it is not known yet. A corruption that came after
// the scope had closed is not its error: the next scope may have an older one to tell first.
func (s *Scope) Failure() (e *Error, pending bool) {
	switch c := s.comm; {
	case c.isMoving():
		return nil, true
	case s.err != nil:
		return s.err, false
	case s.closed:
		return nil, false
	case c.corrupted != nil:
		return c.corrupted, false
	default:
		return nil, c.isOpen() && c.elder() == nil
	}
}

// InVain says whether the scope's context has ended in vain: the error was that of a Try inside,
// which this rank had not come to. A Wait with that context continues.
func (s *Scope) InVain() bool {
	e, pending := s.Failure()
	return s.ended && e == nil && !pending && !s.closed && !s.comm.revoked
}

// Late says whether an error that the program raises now comes after one that its Try
// calls return. It is not sent (T2, T5).
func (c *Comm) Late() bool { return c.Path() != nil && c.isLate() }

// Last returns the error of the latest verdict on c or an ancestor, as the program gets it.
func (c *Comm) Last() error {
	if e := c.ledger.last; e != nil && c.DerivedFrom(e.Comm) {
		return e.Face
	}
	return nil
}

func (c *Comm) isLate() bool {
	for a := c; a != nil; a = a.parent {
		if a.moving > 0 || len(a.untold) > 0 || a.open && a.corrupted == nil && (a != c || a.joined) {
			return true
		}
	}
	return false
}

// Close ends the scope. An error that it owned is over, unless another scope owns it too
// (T3).
func (s *Scope) Close() {
	if s.closed {
		return
	}
	s.closed = true
	if s.next != nil {
		s.next.prev = s.prev
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		s.comm.scopes = s.next
	}
	t := s.outerTry()
	if s.guard {
		t = nil
	}
	if t != nil {
		t.inner--
	}
	if from := s.from; from != nil {
		if from.owners--; from.owners == 0 && len(from.untold) > 0 && from.untold[0] == s.err {
			from.end()
			s.endBelow()
		}
	}
	if t != nil {
		t.catchUp()
	}
}

// outerTry returns the next Try outside that is running; nil: there is none. A goroutine may
// outlive the Try that it began in.
func (s *Scope) outerTry() *Scope {
	t := s.around
	for t != nil && (t.guard || t.closed) {
		t = t.around
	}
	return t
}
