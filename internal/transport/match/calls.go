package match

import (
	"errors"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// recalled is the number of a rank's latest collective calls that are kept (recalled). Only these
// are compared with messages.
const recalled = 8

// calls are the collective calls that a rank has made in its epoch. The lock of the Matcher, or
// that of Count, protects them.
type calls struct {
	made  int                      // number of calls; 0 when an epoch begins
	words [recalled]signature.Word // the signature of call k is at k % recalled
	late  int                      // number of calls that were made for epochs already over
}

// Count counts a collective call of epoch e, and returns its number, from 1.
func (m *Matcher[T]) Count(e transport.Epoch, w signature.Word) (number int) {
	c := &m.calls
	if e != m.Epoch() { // its requests are barred; the number is unique, for the name of a new communicator
		c.late++
		return 1<<30 + c.late
	}
	// The oldest word is overwritten. Messages of its call are not compared any more (Made), but
	// their tags, which have the number, still keep them apart from those of other calls.
	c.made++
	c.words[uint(c.made)%recalled] = w
	return c.made
}

// Call is Count. If a waiting message shows that its sender has made a different call with this
// number, Call also returns the error with which the caller has to halt the rank.
func (m *Matcher[T]) Call(e transport.Epoch, w signature.Word) (number int, mismatch *transport.MismatchError) {
	number = m.Count(e, w)
	if m.Arrived.collective > 0 {
		if n := m.Arrived.other(e, transport.CollectiveTag(number), w); n != nil {
			mismatch = m.Contradicts(&n.Envelope)
		}
	}
	return number, mismatch
}

// other returns the first message with a collective tag whose call does not fit w, or nil if there
// is none among the first few messages. The others are compared when they are received.
func (q *Messages[T]) other(e transport.Epoch, tag int, w signature.Word) *Node[T] {
	looked := 0
	for n := q.first; n != nil && looked < few; n = n.next {
		if n.Tag == tag && n.Signature != w && n.Epoch == e && !w.Fits(n.Signature) {
			return n
		}
		looked++
	}
	return nil
}

// Called returns the number and the word of the latest call in the rank's epoch; the number is 0 if
// there is none.
func (m *Matcher[T]) Called() (number int, w signature.Word) {
	if c := &m.calls; c.made > 0 {
		number, w = c.made, c.words[c.made%recalled]
	}
	return number, w
}

// Latest returns the number of the latest recalled call that is w, or 0.
func (c *calls) Latest(w signature.Word) int {
	for n := c.made; n > max(0, c.made-recalled); n-- {
		if c.words[n%recalled] == w {
			return n
		}
	}
	return 0
}

// Made returns this rank's call with a number in epoch e. Ok says that it is recalled, and may be
// compared with calls of other ranks.
//
// A rank that is halted because it waits for a bad call makes no more calls in the epoch. A rank
// that waits for it therefore waits for the bad call too, so Made returns the bad call for each
// number. If members have died, no calls are compared: ranks that know of the death and ranks that
// do not may correctly make different calls (M4).
func (m *Matcher[T]) Made(e transport.Epoch, number int) (w signature.Word, ok bool) {
	c := &m.calls
	if odd, halted := errors.AsType[*transport.MismatchError](m.Mismatch()); halted && odd.Theirs.Kind() == signature.Refused {
		return odd.Theirs, e == m.Epoch() && !m.HasLostAny()
	}
	if e != m.Epoch() || m.Live() == revoked || m.HasLostAny() || number > c.made || number <= c.made-recalled {
		return 0, false
	}
	return c.words[uint(number)%recalled], true
}

// Before returns number-1 if the call with that number is the same as the call with this number;
// else 0. One operation may make two equal calls, and ranks may wait in the second before the
// first. TryAll does so.
func (m *Matcher[T]) Before(e transport.Epoch, number int) int {
	w, ok := m.Made(e, number)
	if before, made := m.Made(e, number-1); ok && made && number > 1 && before == w {
		return number - 1
	}
	return 0
}

// WaitsIn returns the number of the collective call that a receive or send of this rank belongs to.
// Ok is false if there is none. If its tag is NoTag, the request waits for all other ranks.
func (m *Matcher[T]) WaitsIn(r *transport.Request, rank int) (number int, ok bool) {
	switch {
	case r.Signature == 0:
	case transport.IsCollective(r.Tag) && r.Peer >= 0 && r.Peer != rank, r.Kind == transport.Joining:
		return transport.CollectiveNumber(r.Tag), true
	case r.Tag == transport.NoTag:
		number = m.Latest(r.Signature)
		return number, number > 0
	}
	return 0, false
}

// Contradicts returns the error if a message belongs to a collective call, and this rank has made a
// different call with the same number. Otherwise it returns nil.
func (m *Matcher[T]) Contradicts(e *Envelope) *transport.MismatchError {
	if !transport.IsCollective(e.Tag) {
		return nil
	}
	number := transport.CollectiveNumber(e.Tag)
	own, ok := m.Made(e.Epoch, number)
	if !ok || own.Fits(e.Signature) {
		return nil
	}
	return &transport.MismatchError{Number: number, Own: own, Source: e.Source, Theirs: e.Signature}
}

// Halt ends the rank's part in the epoch, because after a mismatch its messages may belong to
// different calls. It returns the list of the receives and probes that end with the cause. All
// later requests of the epoch end with it too. It does nothing after a Revoke or a Halt.
func (m *Matcher[T]) Halt(cause *transport.MismatchError) *transport.Request {
	if live := m.Live(); live == revoked || live == halted {
		return nil
	}
	return m.enter(m.Epoch(), halted, cause)
}

// IsHalted says whether Mismatch returns an error. It needs no lock.
func (m *Matcher[T]) IsHalted() bool { return m.Live() == halted }

// Mismatch returns the error with which the rank is halted, or nil.
func (m *Matcher[T]) Mismatch() error {
	if !m.IsHalted() {
		return nil
	}
	return m.cause
}
