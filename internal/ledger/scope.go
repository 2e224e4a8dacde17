package ledger

import "slices"

// A Scope is a running call of Try or Guard.
//
// An error ends the contexts of the scopes on its communicator and on those derived
// from it, so that a rank that computes learns of it (P8). The innermost Try on a
// communicator handles an error. Only a corruption ends the contexts of enclosing
// scopes, when its notice comes.
type Scope struct {
	Owner any // the caller's

	comm  *Comm
	guard bool
	// around is the next scope outside on the same communicator.
	around *Scope
	// Of a Try: inner counts the running Try calls directly inside it, entered counts all
	// Try calls directly inside it so far.
	inner   int
	entered int
	path    []int
	ended   bool
	// heard is the first verdict that the program was told after the context had ended,
	// usually the one that ended it.
	heard *Error

	next, prev *Scope // on the same communicator
}

// Open begins a scope inside around.
func (c *Comm) Open(around *Scope, guard bool, owner any) *Scope {
	s := &Scope{Owner: owner, comm: c, guard: guard, around: around, next: c.scopes}
	switch t := s.outerTry(); {
	case t == nil && guard:
	case t == nil:
		c.tries++
		s.path = []int{c.told, c.tries}
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

// Path identifies the Try call by its place in the program, which is the same at all ranks
// that run the same program. It has the number of verdicts that the program was told before
// the outermost Try on the communicator, the number of that Try since the last of them, and
// for each level below the number of the inner Try in the one around it. Numbers of calls
// begin at 1.
func (s *Scope) Path() []int { return s.path }

// Outermost says whether no Try call on the communicator encloses s.
func (s *Scope) Outermost() bool { return s.outerTry() == nil }

// Entered returns the number of inner Try calls so far.
func (s *Scope) Entered() int { return s.entered }

// Comm returns the communicator of the scope.
func (s *Scope) Comm() *Comm { return s.comm }

// Ended says whether an error has ended the scope's context.
func (s *Scope) Ended() bool { return s.ended }

// Heard returns the first verdict that the program was told after an error had ended the
// scope's context. If there is none, it returns the corruption of the communicator, if the
// program was told of it; else nil.
func (s *Scope) Heard() *Error {
	if c := s.comm.corrupted; s.heard == nil && s.ended && c != nil && c.told {
		return c
	}
	return s.heard
}

// catchUp ends the context for errors that came before the scope was opened, or while a Try
// inside it was to report them.
func (s *Scope) catchUp() {
	if s.comm.Broken() {
		s.interrupt(true)
	}
	for a := s.comm; a != nil; a = a.parent {
		if a.disturbs() {
			s.interrupt(a.fatal || slices.ContainsFunc(a.untold, (*Error).Corrupt))
		}
	}
}

// interrupt ends the context because of a peer's error. If the error is no corruption, the
// context of a Guard does not end, nor that of a Try with another Try inside.
func (s *Scope) interrupt(corrupt bool) {
	if s.ended || !corrupt && (s.guard || s.inner > 0) {
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

// Exit says that the function has returned. Until Close, errors still belong to this
// scope, its own signal included, not to the enclosing one.
func (s *Scope) Exit() {
	if s.next != nil {
		s.next.prev = s.prev
	}
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case s.comm.scopes == s:
		s.comm.scopes = s.next
	}
	s.next, s.prev = nil, nil
}

// Close ends the scope.
func (s *Scope) Close() {
	if t := s.outerTry(); t != nil && !s.guard {
		t.inner--
		t.catchUp()
	}
}

// outerTry returns the next Try outside; nil: there is none.
func (s *Scope) outerTry() *Scope {
	t := s.around
	for t != nil && t.guard {
		t = t.around
	}
	return t
}
