package local

import (
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// EagerLimit is the length in bytes up to which a message is buffered when no
// receive for it has been posted. A longer send is done once it is received.
const EagerLimit = 4096

// group is a communicator: what all its ranks share.
type group struct {
	ports []port

	mu   sync.Mutex
	subs map[transport.Name]*sub
}

// sub is a communicator that some of its members have made, and others may yet.
type sub struct {
	*group
	missing []bool // which, by their ranks in the parent
	count   int    // of them
}

// settle notes that a rank has made s or never will. It says whether no rank is
// missing any more.
func (s *sub) settle(rank int) bool {
	if s.missing[rank] {
		s.missing[rank] = false
		s.count--
	}
	return s.count == 0
}

// Comm is one rank's side of a communicator.
type Comm struct {
	g    *group
	own  *port
	rank int
}

var _ transport.Comm = (*Comm)(nil)

// New returns the sides of a communicator of n ranks.
func New(n int) []*Comm {
	g := newGroup(n, 0)
	comms := make([]Comm, n)
	sides := make([]*Comm, n)
	for i := range comms {
		comms[i] = Comm{g, &g.ports[i], i}
		sides[i] = &comms[i]
	}
	return sides
}

func newGroup(n int, e transport.Epoch) *group {
	g := &group{ports: make([]port, n)}
	if e != 0 {
		for i := range g.ports {
			g.ports[i].epoch.Store(uint64(e))
		}
	}
	return g
}

func (c *Comm) Rank() int              { return c.rank }
func (c *Comm) Size() int              { return len(c.g.ports) }
func (c *Comm) Epoch() transport.Epoch { return c.own.epochNow() }

func (c *Comm) Features() transport.Features {
	return transport.Features{Name: "local", CancelSend: true, SharedCores: true}
}

// Sub is done at once: the members share memory, so the first to come makes the
// communicator and leaves it for the others to find by its name.
func (c *Comm) Sub(name transport.Name, members []int, done func(transport.Comm, error)) {
	n, rank := len(c.g.ports), c.rank
	if members != nil {
		n, rank = len(members), slices.Index(members, c.rank)
	}
	g := c.g
	g.mu.Lock()
	s := g.subs[name]
	if s == nil {
		if g.subs == nil {
			g.subs = make(map[transport.Name]*sub)
		}
		s = &sub{newGroup(n, name.Epoch), make([]bool, len(g.ports)), n}
		for i := range s.missing {
			s.missing[i] = members == nil
		}
		for _, member := range members {
			s.missing[member] = true
		}
		g.subs[name] = s
	}
	if s.settle(c.rank) {
		delete(g.subs, name)
	}
	g.mu.Unlock()
	done(&Comm{s.group, &s.ports[rank], rank}, nil)
}

// forget notes that a rank in epoch e will make no communicator named before.
// Others still may, and then share it with those that have.
func (g *group) forget(rank int, e transport.Epoch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, s := range g.subs {
		if name.Epoch.Stale(e) && s.settle(rank) {
			delete(g.subs, name)
		}
	}
}

// Close has nothing to do: the garbage collector frees a communicator once no
// rank has it any more.
func (c *Comm) Close() error { return nil }

// TrySend delivers the message to a receive that waits for it, or buffers it if
// it is short.
func (c *Comm) TrySend(dest, tag int, epoch transport.Epoch, buf []byte) bool {
	if epoch != c.Epoch() {
		return false // Isend says why
	}
	status := transport.Status{Source: c.rank, Tag: tag, Bytes: len(buf)}
	p := &c.g.ports[dest]
	p.mu.Lock()
	if len(buf) > EagerLimit && !p.expects(status, epoch) {
		p.mu.Unlock()
		return false
	}
	probes, recv := p.take(status, epoch)
	if recv == nil {
		p.buffer(status, epoch, buf, false)
	}
	p.mu.Unlock()
	complete(probes)
	if recv != nil {
		fill(recv, status, buf, false)
		recv.Done.Completed(recv)
	}
	return true
}

// Isend delivers the message to a receive that waits for it, or queues it.
func (c *Comm) Isend(r *transport.Request) {
	r.Kind, r.Where, r.Err = transport.Sending, nil, nil
	r.Status = transport.Status{Source: c.rank, Tag: r.Tag, Bytes: len(r.Buf)}
	if own := c.own; r.Epoch != own.epochNow() {
		r.Err = own.causeNow()
		r.Done.Completed(r)
		return
	}
	p := &c.g.ports[r.Peer]
	p.mu.Lock()
	probes, recv := p.take(r.Status, r.Epoch)
	if recv != nil {
		p.mu.Unlock()
		complete(probes)
		fill(recv, r.Status, r.Buf, r.Mode&transport.Shared != 0)
		recv.Done.Completed(recv)
		r.Done.Completed(r)
		return
	}
	eager := r.Mode&transport.Synchronous == 0 && (len(r.Buf) <= EagerLimit || r.Mode&transport.Shared != 0)
	if eager {
		p.buffer(r.Status, r.Epoch, r.Buf, r.Mode&transport.Shared != 0)
	} else {
		eager = !c.own.list(p, r)
	}
	p.mu.Unlock()
	complete(probes)
	if eager {
		r.Done.Completed(r)
	}
}

// Irecv takes a message that has arrived, or waits for one.
func (c *Comm) Irecv(r *transport.Request) {
	r.Kind, r.Where, r.Err = transport.Receiving, nil, nil
	p := c.own
	p.mu.Lock()
	if r.Epoch != p.epochNow() {
		r.Err = p.cause
		p.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	m := p.find(r)
	if m == nil {
		p.post(r)
		p.mu.Unlock()
		return
	}
	p.arrived.remove(m)
	send := m.send
	if send == nil { // copied under the lock: it is short
		fill(r, m.status, m.bytes, m.shared)
		p.recycle(m)
		p.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	m.send = nil // taken: neither Cancel nor Advance of the sender ends it now
	send.Where = nil
	p.mu.Unlock()
	c.g.ports[m.status.Source].unlist(m)
	fill(r, m.status, send.Buf, m.shared)
	r.Done.Completed(r)
	send.Done.Completed(send)
}

// Probe looks for a message that has arrived, or waits for one.
func (c *Comm) Probe(r *transport.Request) {
	r.Kind, r.Where, r.Err = transport.Probing, nil, nil
	p := c.own
	p.mu.Lock()
	if r.Epoch != p.epochNow() {
		r.Err = p.cause
	} else if m := p.find(r); m != nil {
		r.Status = m.status
	} else {
		p.post(r)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	r.Done.Completed(r)
}

// Cancel takes r out of the queue it waits in, if it still does.
func (c *Comm) Cancel(r *transport.Request) bool {
	p := c.own
	if r.Kind == transport.Sending {
		p = &c.g.ports[r.Peer]
	}
	p.mu.Lock()
	switch where := r.Where.(type) {
	case nil:
		p.mu.Unlock()
		return false
	case *message:
		p.arrived.remove(where)
		where.send = nil
		r.Where = nil
		p.mu.Unlock()
		c.own.unlist(where)
	default:
		p.unpost(r)
		p.mu.Unlock()
	}
	r.Err = transport.ErrCancelled
	r.Done.Completed(r)
	return true
}

// Advance moves this rank to the next epoch.
func (c *Comm) Advance(generation int, cause error) {
	p := c.own
	p.mu.Lock()
	e := p.epochNow().Next(generation)
	p.advance(e, cause)
	posted := p.unpostAll()
	p.arrived.removeStale(e)
	p.mu.Unlock()

	for _, m := range p.unlistStale(e) {
		to := &c.g.ports[m.dest]
		to.mu.Lock()
		send := m.send
		if send != nil {
			to.arrived.remove(m)
			m.send, send.Where = nil, nil
		}
		to.mu.Unlock()
		if send != nil {
			send.Err = cause
			send.Done.Completed(send)
		}
	}
	for r := posted; r != nil; {
		next := r.Next
		r.Next, r.Err = nil, cause
		r.Done.Completed(r)
		r = next
	}
	c.g.forget(c.rank, e)
}

// EachPending visits the requests that wait in this rank's queues and in others'.
func (c *Comm) EachPending(visit func(*transport.Request)) {
	p := c.own
	p.mu.Lock()
	for r := p.first; r != nil; r = r.Next {
		visit(r)
	}
	p.mu.Unlock()
	for _, m := range p.listed() {
		to := &c.g.ports[m.dest]
		to.mu.Lock()
		if m.send != nil {
			visit(m.send)
		}
		to.mu.Unlock()
	}
}

// fill gives the message to the receive r.
func fill(r *transport.Request, s transport.Status, bytes []byte, shared bool) {
	r.Status = s
	switch {
	case r.Take && shared:
		r.Buf = bytes
	case r.Take:
		r.Buf = slices.Clone(bytes)
	case r.Alloc != nil:
		copy(r.Alloc(len(bytes)), bytes)
	case len(bytes) > len(r.Buf):
		r.Err = &transport.TruncateError{Status: s, Room: len(r.Buf)}
	default:
		copy(r.Buf, bytes)
	}
}

// complete ends a list of requests.
func complete(r *transport.Request) {
	for r != nil {
		next := r.Next
		r.Next = nil
		r.Done.Completed(r)
		r = next
	}
}
