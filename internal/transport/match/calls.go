package match

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// recalled is how many of its latest collective calls a rank compares messages with.
const recalled = 8

// calls are the collective calls that a rank has made in its epoch.
type calls struct {
	made  int
	words [recalled]signature.Word // of call k at k % recalled
	late  int                      // calls of epochs that were over
}

// Call counts a collective call of epoch e, and returns its number, from 1. If a message is
// there of a rank that has made another call in its place, Call returns the error, with which
// the caller has to halt the rank.
func (p *Port[T]) Call(e transport.Epoch, w signature.Word) (number int, mismatch *transport.MismatchError) {
	c := &p.calls
	if e != p.Epoch() { // its requests are barred, and what it makes gets a name of its own
		c.late++
		return 1<<30 + c.late, nil
	}
	c.made++
	c.words[uint(c.made)%recalled] = w
	if p.Arrived.collective > 0 {
		if n := p.Arrived.other(e, transport.CollectiveTag(c.made), w); n != nil {
			mismatch = p.Contradicts(&n.Envelope)
		}
	}
	return c.made, mismatch
}

// other returns the first message of a collective call that is not w, nil if there is none among
// the first few: those behind are compared when they are received.
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

// Recalls says whether the call that a collective tag is of is w, as far as it is recalled. If
// not, Contradicts says more.
func (c *calls) Recalls(tag int, w signature.Word) bool {
	return c.words[uint(transport.CollectiveNumber(tag))%recalled] == w
}

// Called returns the number of the latest call of the rank's epoch, 0 for none, and what it is.
func (p *Port[T]) Called() (number int, w signature.Word) {
	if c := &p.calls; c.made > 0 {
		number, w = c.made, c.words[c.made%recalled]
	}
	return number, w
}

// Latest returns the number of the latest call that is w; 0: none of those that are recalled.
func (c *calls) Latest(w signature.Word) int {
	for n := c.made; n > max(0, c.made-recalled); n-- {
		if c.words[n%recalled] == w {
			return n
		}
	}
	return 0
}

// Made returns the call of a number in epoch e, and whether there is one that is recalled and
// compared. Where members have died, those who know of it and those who do not may well make
// different calls.
func (p *Port[T]) Made(e transport.Epoch, number int) (w signature.Word, ok bool) {
	c := &p.calls
	if e != p.Live() || p.HasLostAny() || number > c.made || number <= c.made-recalled {
		return 0, false
	}
	return c.words[uint(number)%recalled], true
}

// WaitsIn returns the number of the call that a receive of this rank waits in, and whether
// there is one. The receive waits for its Peer, or, if its tag is NoTag, for all.
func (p *Port[T]) WaitsIn(r *transport.Request, rank int) (number int, ok bool) {
	switch {
	case r.Signature == 0 || r.Kind != transport.Receiving:
	case transport.IsCollective(r.Tag) && r.Peer >= 0 && r.Peer != rank:
		return transport.CollectiveNumber(r.Tag), true
	case r.Tag == transport.NoTag:
		number = p.Latest(r.Signature)
		return number, number > 0
	}
	return 0, false
}

// Contradicts returns the error of a message of a collective call in whose place this rank
// has made another; nil: there is none.
func (p *Port[T]) Contradicts(e *Envelope) *transport.MismatchError {
	if !transport.IsCollective(e.Tag) {
		return nil
	}
	number := transport.CollectiveNumber(e.Tag)
	own, ok := p.Made(e.Epoch, number)
	if !ok || own.Fits(e.Signature) {
		return nil
	}
	return &transport.MismatchError{Number: number, Own: own, Source: e.Source, Theirs: e.Signature}
}

// Halt ends the rank's part in the epoch: after a mismatch nothing can be relied on until the
// next one. It returns the list of receives and probes that end with the cause, as all requests
// of the epoch do that are still to come.
func (p *Port[T]) Halt(cause *transport.MismatchError) *transport.Request {
	if live := p.Live(); live == revoked || live == halted {
		return nil
	}
	return p.enter(p.Epoch(), halted, cause)
}

// IsHalted says whether Mismatch returns an error. It needs no lock.
func (p *Port[T]) IsHalted() bool { return p.Live() == halted }

// Mismatch returns what the rank has halted for, or nil.
func (p *Port[T]) Mismatch() error {
	if !p.IsHalted() {
		return nil
	}
	return p.cause
}
