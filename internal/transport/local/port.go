package local

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A port is where the messages to one rank on one communicator meet its receives. No goroutine
// holds the mu of two ports. It may lock sending.mu while it holds a mu, and locks nothing
// while it holds sending.mu.
type port struct {
	g       *group
	process *process // that the port belongs to
	rank    int

	// listener is set, under mu, before attention says that it is there.
	listener  transport.Listener
	attention atomic.Int32
	turn      atomic.Int32 // whether the listener is asked for messages
	early     []early      // what came before the listener; guarded by mu

	// mu guards the Port. Its epoch changes under sending.mu as well.
	mu sync.Mutex
	match.Port[message]
	free      *message // buffers of messages that were received
	freeCount int

	// sending lists the messages of this rank that wait in other ports.
	sending struct {
		mu       sync.Mutex
		messages []*message
	}
}

// message is a message that waits for its receive. If it has a Send, it is not buffered: its
// bytes are the sender's until the receive copies them. The mu of the port in which it waits
// guards Send.
type message struct {
	match.Node[message]
	shared bool
	next   *message // in the list of buffers

	dest  int // rank of the port in which it waits, if it has a Send
	index int // in the sender's list, guarded by its sending.mu; -1: not listed

	bytes  []byte
	inline [64]byte          // has the bytes if there are few
	long   *[EagerLimit]byte // has the bytes if there are many; nil: they are elsewhere
}

// longBuffers are kept for reuse: to make one takes longer than to fill it.
var longBuffers = sync.Pool{New: func() any { return new([EagerLimit]byte) }}

// spareBuffers bounds the buffers that a port keeps for later messages.
const spareBuffers = 8

// barred returns the error of a receive or probe that this rank must not begin, or nil. The
// caller holds mu.
func (p *port) barred(r *transport.Request) error {
	if p.process.dead.Load() {
		return transport.ErrDied
	}
	return p.Barred(r)
}

// expects says whether a posted receive will take a message.
func (p *port) expects(m match.Key) bool {
	r := p.Posted.Find(m)
	if r == nil || r.Kind != transport.Probing {
		return r != nil && r.Kind == transport.Receiving
	}
	for r := range p.Posted.All() {
		if r.Kind != transport.Probing && r.Epoch == m.Epoch && r.Matches(transport.Status{Source: m.Source, Tag: m.Tag}) {
			return r.Kind == transport.Receiving
		}
	}
	return false
}

// counts says whether a request between this rank and peer counts in awaited of the peer's
// process: the ranks differ and, if processes are not mortal, the request ends if the peer's
// program does.
func (p *port) counts(peer, tag int) bool {
	return peer != p.rank && (p.g.mortal || !transport.IsCollective(tag))
}

// served takes requests that no longer wait in this port out of the counts of their peers.
func (p *port) served(list *transport.Request) {
	for r := list; r != nil; r = r.Next {
		if r.Peer >= 0 && p.counts(r.Peer, r.Tag) {
			p.g.ports[r.Peer].process.awaited.Add(-1)
		}
	}
}

// endIf ends the receives and probes for which which returns true.
func (p *port) endIf(which func(*transport.Request) bool, cause error) {
	p.mu.Lock()
	list := p.TakeIf(which)
	p.mu.Unlock()
	p.served(list)
	end(list, cause)
}

// When this many messages wait at a rank for their receives, sends to it wait for theirs. Otherwise
// a rank that is ahead of another in a loop would fill the memory. A program may send many messages
// before they are received, but a collective call may always wait for the other ranks.
const (
	mostKept        = 1 << 16
	mostKeptOfCalls = 64 // plus 4 for each rank
)

// isFull says whether a message with this tag would be too many. The caller holds mu.
func (p *port) isFull(tag int) bool {
	if transport.IsCollective(tag) {
		return p.Arrived.OfCalls() >= mostKeptOfCalls+4*len(p.g.ports)
	}
	return p.Arrived.Len() >= mostKept
}

// buffer keeps a copy of a message or, if it is shared, the message itself: for the Mprobe r
// or, if r is nil, in the queue. It drops a message of an epoch that is over.
func (p *port) buffer(e *match.Envelope, bytes []byte, shared bool, r *transport.Request) {
	if p.IsOver(e.Epoch) {
		return
	}
	m := p.free
	if m == nil {
		m = newMessage()
	} else {
		p.free = m.next
		p.freeCount--
	}
	m.Envelope, m.shared, m.bytes = *e, shared, bytes
	switch {
	case shared:
	case len(bytes) > EagerLimit/8 && len(bytes) <= EagerLimit:
		m.long = longBuffers.Get().(*[EagerLimit]byte)
		m.bytes = m.long[:copy(m.long[:], bytes)]
	default:
		m.bytes = append(m.inline[:0], bytes...)
	}
	p.queue(m, r)
}

// queue keeps a message for the Mprobe r or, if r is nil, in the queue.
func (p *port) queue(m *message, r *transport.Request) {
	if r != nil {
		p.Keep(r, &m.Node)
	} else {
		p.Arrived.Push(&m.Node)
	}
}

func newMessage() *message {
	m := new(message)
	m.Of = m
	return m
}

func (p *port) recycle(m *message) {
	if m.long != nil {
		longBuffers.Put(m.long)
		m.long = nil
	}
	if p.freeCount < spareBuffers {
		m.bytes, m.next = nil, p.free
		p.free = m
		p.freeCount++
	}
}

// list keeps the message of r at port to, whose mu is held, for mprobe or, if that is nil, in
// the queue. It adds the message to the list of the sender's port p. It returns false if the
// sender has left r's epoch, and in late what to.awaits returns.
func (p *port) list(to *port, e *match.Envelope, r, mprobe *transport.Request) (late *process, listed bool) {
	m := newMessage()
	m.Envelope, m.shared = *e, r.Mode&transport.Shared != 0
	m.Send, m.dest = r, r.Peer
	p.sending.mu.Lock()
	defer p.sending.mu.Unlock()
	if p.IsOver(r.Epoch) {
		r.Err = p.Barred(r)
		return nil, false
	}
	m.index = len(p.sending.messages)
	p.sending.messages = append(p.sending.messages, m)
	to.queue(m, mprobe) // even a stale one: the sender's Advance ends it
	r.Where = m
	if p.counts(r.Peer, r.Tag) {
		late = to.awaits(r.Epoch)
	}
	return late, true
}

// withdrawIf takes the send off m, which waits in port p, and returns it, if which returns true
// for it and no receive has taken the message.
func (p *port) withdrawIf(m *message, which func(*transport.Request) bool) *transport.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := m.Send
	if r == nil || !which(r) {
		return nil
	}
	p.Drop(&m.Node)
	p.unsend(m)
	return r
}

// endSends ends this rank's sends whose messages which returns true for, unless a receive has
// taken them.
func (p *port) endSends(which func(*message) bool, cause error) {
	for _, m := range p.unlistIf(which) {
		end(p.g.ports[m.dest].withdrawIf(m, func(*transport.Request) bool { return true }), cause)
	}
}

// unsend takes the send off m. The caller holds p's mu.
func (p *port) unsend(m *message) {
	m.Send.Where, m.Send = nil, nil
	if p.counts(m.Source, m.Tag) {
		p.process.awaited.Add(-1)
	}
}

// unlist removes m from the sender's list, which is not ordered.
func (p *port) unlist(m *message) {
	p.sending.mu.Lock()
	defer p.sending.mu.Unlock()
	if m.index < 0 {
		return
	}
	s := p.sending.messages
	last := s[len(s)-1]
	s[m.index], last.index = last, m.index
	s[len(s)-1] = nil
	p.sending.messages = s[:len(s)-1]
	m.index = -1
}

// unlistIf removes the messages for which match returns true from the sender's list.
func (p *port) unlistIf(match func(*message) bool) []*message {
	var taken []*message
	p.sending.mu.Lock()
	p.sending.messages = slices.DeleteFunc(p.sending.messages, func(m *message) bool {
		if match(m) {
			m.index = -1
			taken = append(taken, m)
			return true
		}
		return false
	})
	for i, m := range p.sending.messages {
		m.index = i
	}
	p.sending.mu.Unlock()
	return taken
}

func (p *port) listed() []*message {
	p.sending.mu.Lock()
	defer p.sending.mu.Unlock()
	return slices.Clone(p.sending.messages)
}
