package local

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A port is where the messages to one rank on one communicator meet its
// receives. mu is never held while another port's mu is taken; sending.mu may
// be taken under any mu, and nothing is taken under it.
type port struct {
	g       *group
	process *process // whose port it is
	rank    int

	// listener is set, under mu, before attention says that it is there.
	listener  transport.Listener
	attention atomic.Int32
	turn      atomic.Int32 // whether it is asked for messages
	early     []early      // what came before; guarded by mu

	mu sync.Mutex
	// epoch is the one the rank is in, and live is the same until it is revoked:
	// then no request is of it. Both are changed under mu and sending.mu.
	epoch, live atomic.Uint64
	cause       error              // why the epoch before this one ended, or all did; changed likewise
	first, last *transport.Request // receives and probes posted, oldest first
	arrived     queue
	free        *message // buffers of messages that were received
	freeCount   int

	// sending lists the messages of this rank that wait in other ports.
	sending struct {
		mu       sync.Mutex
		messages []*message
	}
}

// message is one that waits for its receive. One with a send set is not
// buffered: its bytes are the sender's until the receive copies them.
type message struct {
	next, prev *message
	status     transport.Status
	epoch      transport.Epoch
	shared     bool

	send  *transport.Request // guarded by mu of the port it waits in
	dest  int                // that port, if the message has a send
	index int                // in the sender's list, under its sending.mu; -1: not there

	bytes  []byte
	inline [64]byte // where bytes are if there are few
}

// spareBuffers bounds the buffers that a port keeps for later messages.
const spareBuffers = 8

func (p *port) epochNow() transport.Epoch { return transport.Epoch(p.epoch.Load()) }

func (p *port) liveNow() transport.Epoch { return transport.Epoch(p.live.Load()) }

// revoked is no epoch: such counts have another sum, modulo 4.
const revoked = ^transport.Epoch(0)

// advance begins epoch e, in which requests of epoch live are served.
func (p *port) advance(e, live transport.Epoch, cause error) {
	p.sending.mu.Lock()
	if p.liveNow() != revoked {
		p.live.Store(uint64(live)) // first: whoever has read the new epoch finds it live
		p.cause = cause
	}
	p.epoch.Store(uint64(e))
	p.sending.mu.Unlock()
}

func (p *port) causeNow() error {
	p.sending.mu.Lock()
	defer p.sending.mu.Unlock()
	return p.cause
}

// barred returns the error of a receive or probe that this rank must not begin. The
// caller holds mu.
func (p *port) barred(r *transport.Request) error {
	switch {
	case r.Epoch != p.liveNow():
		return p.cause
	case p.g.deaths.Load() && p.process.dead.Load():
		return transport.ErrDied
	}
	return nil
}

// expects says whether a receive posted matches a message.
func (p *port) expects(s transport.Status, epoch transport.Epoch) bool {
	if epoch != p.liveNow() {
		return false
	}
	for r := p.first; r != nil; r = r.Next {
		if r.Kind == transport.Receiving && r.Matches(s) {
			return true
		}
	}
	return false
}

// take takes the first receive posted that matches a message, and the probes
// before it that do, as a list.
func (p *port) take(s transport.Status, epoch transport.Epoch) (probes, recv *transport.Request) {
	if epoch != p.liveNow() {
		return nil, nil
	}
	for r := p.first; r != nil; {
		next := r.Next
		if r.Matches(s) {
			p.unpost(r)
			if r.Kind == transport.Receiving {
				return probes, r
			}
			r.Status, r.Next = s, probes
			probes = r
		}
		r = next
	}
	return probes, nil
}

// find returns the first message of this epoch that r matches.
func (p *port) find(r *transport.Request) *message {
	epoch := p.liveNow()
	for m := p.arrived.first; m != nil; m = m.next {
		if m.epoch == epoch && r.Matches(m.status) {
			return m
		}
	}
	return nil
}

// post queues r. It returns the process that r waits for if that has left.
func (p *port) post(r *transport.Request) (late *process) {
	r.Where, r.Next, r.Prev = p, nil, p.last
	if p.last == nil {
		p.first = r
	} else {
		p.last.Next = r
	}
	p.last = r
	if p.g.mortal && r.Peer >= 0 {
		late = p.g.ports[r.Peer].awaits(r.Epoch)
	}
	return late
}

func (p *port) unpost(r *transport.Request) {
	if r.Prev == nil {
		p.first = r.Next
	} else {
		r.Prev.Next = r.Next
	}
	if r.Next == nil {
		p.last = r.Prev
	} else {
		r.Next.Prev = r.Prev
	}
	r.Where, r.Next, r.Prev = nil, nil, nil
	if p.g.mortal && r.Peer >= 0 {
		p.g.ports[r.Peer].process.awaited.Add(-1)
	}
}

// unpostIf takes the receives and probes that match holds for, as a list.
func (p *port) unpostIf(match func(*transport.Request) bool) (list *transport.Request) {
	for r := p.last; r != nil; {
		prev := r.Prev
		if match(r) {
			p.unpost(r)
			r.Next, list = list, r
		}
		r = prev
	}
	return list
}

// buffer queues a copy of a message, unless it is of an epoch that is over; or,
// if it is shared, the message itself.
func (p *port) buffer(s transport.Status, epoch transport.Epoch, bytes []byte, shared bool) {
	if epoch.Stale(p.epochNow()) || p.liveNow() == revoked {
		return
	}
	m := p.free
	if m == nil {
		m = new(message)
	} else {
		p.free = m.next
		p.freeCount--
	}
	m.status, m.epoch, m.shared, m.bytes = s, epoch, shared, bytes
	if !shared {
		m.bytes = append(m.inline[:0], bytes...)
	}
	p.arrived.push(m)
}

func (p *port) recycle(m *message) {
	if p.freeCount < spareBuffers {
		m.bytes, m.next = nil, p.free
		p.free = m
		p.freeCount++
	}
}

// list queues what r sends at port to, whose mu is held, and lists it with the
// sender's port p. It returns false if the sender has left r's epoch, and to's
// process if that has left.
func (p *port) list(to *port, r *transport.Request) (late *process, listed bool) {
	m := &message{status: r.Status, epoch: r.Epoch, shared: r.Mode&transport.Shared != 0, send: r, dest: r.Peer}
	p.sending.mu.Lock()
	defer p.sending.mu.Unlock()
	if r.Epoch.Stale(p.epochNow()) || p.liveNow() == revoked {
		r.Err = p.cause
		return nil, false
	}
	m.index = len(p.sending.messages)
	p.sending.messages = append(p.sending.messages, m)
	to.arrived.push(m) // a stale one too: Advance of the sender ends it
	r.Where = m
	if to.g.mortal {
		late = to.awaits(r.Epoch)
	}
	return late, true
}

// withdraw takes the send behind m, which waits in port p, unless a receive has
// taken it. The caller has unlisted m.
func (p *port) withdraw(m *message) *transport.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := m.send
	if r != nil {
		p.arrived.remove(m)
		p.unsend(m)
	}
	return r
}

// unsend takes the send off m; p's mu is held.
func (p *port) unsend(m *message) {
	m.send.Where, m.send = nil, nil
	if p.g.mortal {
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

// unlistIf takes the messages that match holds for out of the sender's list.
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

// queue is a list of messages in the order of their arrival.
type queue struct{ first, last *message }

func (q *queue) push(m *message) {
	m.next, m.prev = nil, q.last
	if q.last == nil {
		q.first = m
	} else {
		q.last.next = m
	}
	q.last = m
}

func (q *queue) remove(m *message) {
	if m.prev == nil {
		q.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		q.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.next, m.prev = nil, nil
}

// removeIf drops the buffered messages that match holds for. Those that are not
// buffered wait for their senders, which remove them when they advance; no
// receive finds them.
func (q *queue) removeIf(match func(*message) bool) {
	for m := q.first; m != nil; {
		next := m.next
		if m.send == nil && match(m) {
			q.remove(m)
		}
		m = next
	}
}
