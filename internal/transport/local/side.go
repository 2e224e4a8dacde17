package local

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A Comm is one rank's side of a communicator, in which the messages to the rank meet its receives.
// No goroutine holds the mu of two sides. It may lock sending.mu while it holds a mu, and locks
// nothing while it holds sending.mu.
//
// The locks are taken in this order: the mu of a communicator, that of a process, that of a side,
// and sending.mu. The board's lock is never held together with a side's. Completers, listeners, and
// the functions of Quiesce are called without any lock. Of the functions of callers only these run
// with one: Alloc, of a receive that gets a short message; Carry; Awaited and Acknowledged; and the
// visitors of EachPending and EachUnreceived.
type Comm struct {
	comm    *communicator
	process *process // that the side belongs to
	rank    int

	// listener is set, under mu, before attention says that it is there.
	listener  transport.Listener
	attention atomic.Int32
	asking    atomic.Int32 // whether the listener is asked for messages
	early     []early      // what came before the listener; guarded by mu

	// Released is set by Release, and gone when what the rank has sent before has arrived.
	released, gone atomic.Bool

	working working

	// mu guards the Matcher. Its epoch changes under sending.mu as well.
	mu sync.Mutex
	match.Matcher[message]
	free      *message // buffers of messages that were received
	freeCount int

	// sending lists the messages of this rank that wait in other sides.
	sending struct {
		mu       sync.Mutex
		messages []*message
	}
}

var _ transport.Comm = (*Comm)(nil)

// message is a message that waits for its receive. If it has a Send, it is not buffered: its bytes
// are the sender's until the receive copies them. The mu of the side in which it waits guards Send.
// The goroutine that clears Send, with that mu, ends the send: in a receive, in Cancel, or for the
// sender's side. Others then find no Send, and leave the message alone.
type message struct {
	match.Node[message]
	shared bool
	next   *message // in the list of buffers

	// Both are for a message with a Send, which the sender's side has to find in order to end it. A
	// buffered message is no concern of the sender any more.
	dest  int // rank of the side in which it waits, if it has a Send
	index int // in the sender's list, guarded by its sending.mu; -1: not listed

	bytes []byte
	// A message that is only a little longer gets memory of its own size, because most of a long
	// buffer would be empty.
	inline [64]byte          // has the bytes if there are few
	long   *[EagerLimit]byte // has the bytes if there are many; nil: they are elsewhere
}

// longBuffers are kept for reuse: to make one takes longer than to fill it.
var longBuffers = sync.Pool{New: func() any { return new([EagerLimit]byte) }}

// spareBuffers bounds the buffers that a side keeps for later messages.
const spareBuffers = 8

// barred returns the error of a receive or probe that this rank must not begin, or nil. The caller
// holds mu. The cause changes with mu. A death that is not seen here ends the request later, in the
// queue.
func (s *Comm) barred(r *transport.Request) error {
	if s.process.dead.Load() {
		return transport.ErrDied
	}
	return s.Barred(r)
}

// expects says whether a posted receive matches a message.
func (s *Comm) expects(m match.Key) bool {
	r := s.Posted.Find(m)
	if r == nil || r.Kind != transport.Probing {
		return r != nil && r.Kind == transport.Receiving
	}
	// Probes leave the message, so the next request that is no probe gets it. The index has only
	// the first request that matches, so the queue is searched for the next.
	for r := range s.Posted.All() {
		if r.Kind != transport.Probing && r.Epoch == m.Epoch && r.Matches(transport.Status{Source: m.Source, Tag: m.Tag}) {
			return r.Kind == transport.Receiving
		}
	}
	return false
}

// counts says whether a request between this rank and peer counts in awaited of the peer's process.
// A process must not expire because of its own requests. A receive from AnySource names no process
// (see lastHope).
func (s *Comm) counts(peer int) bool { return peer >= 0 && peer != s.rank }

// served is called for requests that no longer wait in this side. It removes them from the counts
// of their peers (awaited). It is called before any of the list is told its end, because Peer is
// the owner's again after that. It needs no lock.
func (s *Comm) served(list *transport.Request) {
	for r := list; r != nil; r = r.Next {
		if s.counts(r.Peer) {
			s.comm.sides[r.Peer].process.awaited.Add(-1)
		}
	}
}

// endIf ends the receives and probes for which which returns true.
func (s *Comm) endIf(which func(*transport.Request) bool, cause error) {
	s.mu.Lock()
	list := s.TakeIf(which)
	s.mu.Unlock()
	s.served(list)
	end(list, cause)
}

// When this many messages wait at a rank for their receives, a send to it completes only when its
// message is received. Otherwise a rank that is ahead of another in a loop would fill the memory.
// The limit is high for messages of the program, which may send many before they are received. It
// is low for messages of collective calls, because any collective call may wait for the other
// ranks.
const (
	mostKept        = 1 << 16
	mostKeptOfCalls = 64 // plus 4 for each rank
)

// isFull says whether a message with this tag would be too many. The caller holds mu.
func (s *Comm) isFull(tag int) bool {
	if transport.IsCollective(tag) {
		return s.Arrived.OfCalls() >= mostKeptOfCalls+4*len(s.comm.sides)
	}
	return s.Arrived.Len() >= mostKept
}

// buffer keeps a copy of a message or, if it is shared, the message itself: for the Mprobe r
// or, if r is nil, in the queue. It drops a message of an epoch that is over.
func (s *Comm) buffer(e *match.Envelope, bytes []byte, shared bool, r *transport.Request) {
	// With mu, under which the epoch changes: either the message is dropped here, or it is in the
	// queue when Advance drops what is over (P3).
	if s.IsOver(e.Epoch) {
		return
	}
	m := s.free
	if m == nil {
		m = newMessage()
	} else {
		s.free = m.next
		s.freeCount--
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
	s.queue(m, r)
}

// queue keeps a message for the Mprobe r or, if r is nil, in the queue.
func (s *Comm) queue(m *message, r *transport.Request) {
	if r != nil {
		s.Keep(r, &m.Node)
	} else {
		s.Arrived.Push(&m.Node)
	}
}

func newMessage() *message {
	m := new(message)
	m.Of = m
	return m
}

// recycle keeps a buffered message for a later one. The caller holds mu, has taken m out of its
// queue, and has used its bytes. No message with a Send may come here, because its sender may have
// it listed still.
func (s *Comm) recycle(m *message) {
	if m.long != nil {
		longBuffers.Put(m.long)
		m.long = nil
	}
	if s.freeCount < spareBuffers {
		// Shared bytes, and bytes of their own size, are let go. A receive may have kept the
		// former.
		m.bytes, m.next = nil, s.free
		s.free = m
		s.freeCount++
	}
}

// list keeps the message of r at side to, whose mu is held, for mprobe or, if that is nil, in the
// queue. It adds the message to the list of the sender's side s. It returns false if the sender has
// left r's epoch, and in stays what to.awaits returns. The epoch is looked at, and the message is
// listed and queued, in one hold of both locks. So the sender's Advance comes before, and r is not
// listed, or finds the message in both places.
func (s *Comm) list(to *Comm, e *match.Envelope, r, mprobe *transport.Request) (stays, listed bool) {
	m := newMessage()
	m.Envelope, m.shared = *e, r.Mode&transport.Shared != 0
	m.Send, m.dest = r, r.Peer
	s.sending.mu.Lock()
	defer s.sending.mu.Unlock()
	if s.IsOver(r.Epoch) {
		r.Err = s.Barred(r)
		return true, false
	}
	m.index = len(s.sending.messages)
	s.sending.messages = append(s.sending.messages, m)
	to.queue(m, mprobe) // even a stale one: the sender's Advance ends it
	r.Where = m
	return !s.counts(r.Peer) || to.awaits(), true
}

// withdrawIf takes the send off m, which waits in side s, and returns it, if which returns true
// for it and no receive has taken the message.
func (s *Comm) withdrawIf(m *message, which func(*transport.Request) bool) *transport.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := m.Send
	if r == nil || !which(r) {
		return nil
	}
	s.Drop(&m.Node)
	s.unsend(m)
	return r
}

// endSends ends this rank's sends for whose messages which returns true, unless a receive has taken
// them. They are taken off the list first, because no other side's mu may be locked while
// sending.mu is held. In between a receive may take the message. Its unlist then finds nothing to
// do.
func (s *Comm) endSends(which func(*message) bool, cause error) {
	for _, m := range s.unlistIf(which) {
		end(s.comm.sides[m.dest].withdrawIf(m, func(*transport.Request) bool { return true }), cause)
	}
}

// unsend takes the send off m. The caller holds s's mu.
func (s *Comm) unsend(m *message) {
	m.Send.Where, m.Send = nil, nil
	if s.counts(m.Source) {
		s.process.awaited.Add(-1)
	}
}

// unlist removes m from the sender's list, which is not ordered.
func (s *Comm) unlist(m *message) {
	s.sending.mu.Lock()
	defer s.sending.mu.Unlock()
	// unlistIf has taken it off first. Its caller finds, or has found, that m has no Send.
	if m.index < 0 {
		return
	}
	list := s.sending.messages
	last := list[len(list)-1]
	list[m.index], last.index = last, m.index
	list[len(list)-1] = nil
	s.sending.messages = list[:len(list)-1]
	m.index = -1
}

// unlistIf removes the messages for which match returns true from the sender's list. Match is
// called with sending.mu, so it may lock nothing, nor look at a message's Send.
func (s *Comm) unlistIf(match func(*message) bool) []*message {
	var taken []*message
	s.sending.mu.Lock()
	s.sending.messages = slices.DeleteFunc(s.sending.messages, func(m *message) bool {
		if match(m) {
			m.index = -1
			taken = append(taken, m)
			return true
		}
		return false
	})
	for i, m := range s.sending.messages {
		m.index = i
	}
	s.sending.mu.Unlock()
	return taken
}

// listed returns a copy of the list, to be visited without sending.mu. Any of the messages may be
// received meanwhile.
func (s *Comm) listed() []*message {
	s.sending.mu.Lock()
	defer s.sending.mu.Unlock()
	return slices.Clone(s.sending.messages)
}
