package node

import (
	"cmp"
	"math/bits"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Ranks of one machine meet in a call by one message from each rank to each that needs it. Nobody
// waits for an answer, so a call takes as long as one message, and where processes share cores each
// of them needs its core once. The messages are packets like all others: epochs, deaths, other
// calls and garbage are handled as theirs.
//
// A call that meets is one request. It waits in Posted for a message of its call from any rank,
// until no rank is Missing.

// mostMeet is the most ranks that meet: Missing has a bit for each.
const mostMeet = 64

// ahead counts the calls that have met in an epoch since all ranks have waited for all, and their
// bytes. A rank which others need, and which needs no other, may get ahead of them. Without a limit
// a root in a loop would fill their memory. So when the limit is reached, all wait for all. They
// all count the same.
type ahead struct {
	epoch        transport.Epoch
	calls, bytes int
}

// The limits of ahead.
const (
	mostCallsAhead = 64
	mostBytesAhead = 64 << 10
)

// meets counts a call, and says whether all ranks wait for all in it.
func (a *ahead) meets(e transport.Epoch, bytes int) (all bool) {
	if e != a.epoch {
		*a = ahead{epoch: e}
	}
	a.calls++
	a.bytes += bytes
	if all = a.calls >= mostCallsAhead || a.bytes >= mostBytesAhead; all {
		a.calls, a.bytes = 0, 0
	}
	return all
}

// board returns the most bytes that ranks may show each other, or 0 if they do not meet.
func (c *comm) board() int {
	for r := range c.Size() {
		if c.Size() > mostMeet || c.e.from[c.process(r)] == nil {
			return 0
		}
	}
	return c.e.limit
}

// Meet sends the parts that others need. It takes what has come, and posts r for the rest.
func (c *comm) Meet(r *transport.Request) (ended bool) {
	e, m := c.e, r.Meeting
	e.lock()
	defer e.unlock()
	number, odd := c.count(r.Epoch, r.Signature)
	if odd != nil {
		c.contradict(r.Epoch, odd)
	}
	r.Kind, r.Where, r.Peer, r.Tag = transport.Joining, nil, transport.AnySource, transport.CollectiveTag(number)
	if r.Err = cmp.Or(c.barred(r), c.DeathFor(r)); r.Err != nil {
		return true
	}
	c.show(r, m.Flow == transport.Together || c.ahead.meets(r.Epoch, m.Bytes))
	// A ring with garbage makes the engine fail.
	if r.Err = e.err; r.Err != nil {
		return true
	}
	// What has come before the call is among the waiting messages, and what has come since is at
	// the front of a ring.
	for left := m.Missing; left > 0 && c.Arrived.OfCalls() > 0; left &= left - 1 {
		r.Peer = bits.TrailingZeros64(left) // so Match need not look at all messages
		if a := c.Match(r); a != nil {
			c.take(r, r.Peer, a)
		}
	}
	r.Peer = transport.AnySource
	looks := atStart
	if m.Soon {
		looks = glances
	}
	for n := e.looks(looks); n > 0 && m.Missing > 0 && r.Err == nil && e.wanted.Load() == 0; n-- {
		for left := m.Missing; left > 0; left &= left - 1 {
			c.lookForPart(r, bits.TrailingZeros64(left))
		}
	}
	if m.Missing == 0 || r.Err != nil {
		return true
	}
	c.Post(r)
	c.needs(r)
	return false
}

// show sends each rank the part that it needs of this one, and notes which ranks this one needs. If
// all is set, all ranks need each other, though some parts may be empty.
func (c *comm) show(r *transport.Request, all bool) {
	m, n := r.Meeting, c.Size()
	m.Missing = 0
	h := header{kind: whole, to: c.context, epoch: r.Epoch, tag: r.Tag, signature: r.Signature}
	// Each rank begins with the next one, so the first part of each goes to another rank.
	for to := c.rank + 1; to < c.rank+n; to++ {
		to := to % n
		var part []byte
		gives := m.Gives(c.rank, to)
		if gives {
			part = m.Carrier.For(to)
		}
		if gives || all {
			h.length = len(part)
			c.e.sendPacket(c.process(to), &h, part)
		}
		if all || m.Gives(to, c.rank) {
			m.Missing |= 1 << to
		}
	}
}

// lookForPart takes the part of a rank if it is the next packet in its ring. It compares the packet
// as direct does: a function for both makes short calls 4 % slower.
func (c *comm) lookForPart(r *transport.Request, from int) {
	e, process := c.e, c.process(from)
	in := e.from[process]
	// A heart has to hear of each packet, so then they all pass the engine.
	if e.heart != nil || !in.Ready() {
		return
	}
	packet, err := in.Read()
	if packet == nil || err != nil {
		return
	}
	a := &e.arrival
	h := &a.header
	if a.bytes, err = h.decode(packet); err != nil ||
		h.kind != whole || h.listener || h.to != c.context || h.epoch != r.Epoch || h.tag != r.Tag || h.signature != r.Signature {
		return
	}
	c.take(r, from, a)
	in.Done(len(packet))
}

// take takes the part of a rank from a message. An error is in r.Err.
func (c *comm) take(r *transport.Request, from int, a *arrival) {
	m := r.Meeting
	if m.Missing>>from&1 == 0 { // no rank sends two
		return
	}
	m.Missing &^= 1 << from
	bytes, theirs := a.bytes, a.header.signature
	if a.header.kind == offer { // nor an offer, whose bytes are not those of the message
		c.e.refuse(a)
		bytes = nil
	}
	switch {
	case r.Err != nil: // the first error counts
	// Contradicts compares the latest calls alone.
	case !r.Signature.Fits(theirs):
		r.Err = &transport.MismatchError{Number: transport.CollectiveNumber(r.Tag), Own: r.Signature, Source: from, Theirs: theirs}
	case m.Gives(from, c.rank):
		r.Err = m.Carrier.Take(from, bytes)
	}
}

// meetIn takes a part for a call that waited for it, and is in no queue any more.
func (c *comm) meetIn(r *transport.Request, from int, a *arrival) {
	r.Err = nil
	if c.take(r, from, a); r.Meeting.Missing > 0 && r.Err == nil {
		c.Post(r)
		c.needs(r)
		return
	}
	c.e.end(r, r.Err)
}
