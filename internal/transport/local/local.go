package local

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// EagerLimit is the length in bytes up to which a message is buffered if no receive for it has
// been posted. A longer send completes when its message is received.
const EagerLimit = 4096

// group is a communicator: what all its ranks share.
type group struct {
	*job
	ports  []port
	relay  relay
	due    atomic.Bool  // its calls are compared in the next comparison
	sweeps atomic.Int32 // number of sweeps that are wanted because members have gone
	absent atomic.Int32 // members that have gone or died; one may count twice

	mu   sync.Mutex
	subs map[transport.Name]*sub
}

// job is what all groups share.
type job struct {
	mortal  bool // processes may die
	compare comparison
}

// sub is a communicator that some of its members have made, and others may still make.
type sub struct {
	*group
	missing []bool // which members, by their ranks in the parent
	count   int    // number of missing members
}

// settle notes that a rank has made s or never will. It says whether no rank is missing now.
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
func New(n int) []*Comm { return newJob(n, false) }

// NewMortal is New for ranks that see each other die, as processes do. A receive takes some
// nanoseconds more.
func NewMortal(n int) []*Comm { return newJob(n, true) }

func newJob(n int, mortal bool) []*Comm {
	processes := make([]process, n)
	j := &job{mortal: mortal}
	g := newGroup(j, n, 0, func(i int) *process { return &processes[i] })
	comms := make([]Comm, n)
	sides := make([]*Comm, n)
	for i := range comms {
		comms[i] = Comm{g, &g.ports[i], i}
		sides[i] = &comms[i]
	}
	return sides
}

func newGroup(j *job, n int, e transport.Epoch, member func(int) *process) *group {
	g := &group{job: j, ports: make([]port, n)}
	for i := range g.ports {
		p := &g.ports[i]
		p.g, p.process, p.rank = g, member(i), i
		p.Begin(e)
	}
	for i := range g.ports {
		if p := g.ports[i].process; p.join(g) {
			g.tellDeath(p)
			g.endAfterDeath(p)
		}
	}
	return g
}

func (c *Comm) Rank() int              { return c.rank }
func (c *Comm) Size() int              { return len(c.g.ports) }
func (c *Comm) Machine(int) int        { return 0 } // all ranks are on one machine
func (c *Comm) Epoch() transport.Epoch { return c.own.Epoch() }

func (c *Comm) Features() transport.Features {
	return transport.Features{Name: "local", CancelSend: true, SharedCores: true, Deaths: c.g.mortal}
}

// Sub completes at once. The members share memory: the first one makes the communicator, and
// the others find it by its name.
func (c *Comm) Sub(name transport.Name, members []int) (transport.Comm, error) {
	if err := name.Check(); err != nil {
		return nil, err
	}
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
		rankOf := func(i int) int {
			if members == nil {
				return i
			}
			return members[i]
		}
		made := newGroup(g.job, n, name.Epoch, func(i int) *process { return g.ports[rankOf(i)].process })
		s = &sub{made, make([]bool, len(g.ports)), n}
		for i := range n {
			s.missing[rankOf(i)] = true
		}
		for i := range g.ports {
			if g.ports[i].process.dead.Load() {
				s.settle(i)
			}
		}
		g.subs[name] = s
	}
	if s.settle(c.rank) {
		delete(g.subs, name)
	}
	g.mu.Unlock()
	return &Comm{s.group, &s.ports[rank], rank}, nil
}

// forget notes that a rank in epoch e will make no communicator named in an earlier epoch.
// Others may still make it, and then share it with those that have.
func (g *group) forget(rank int, e transport.Epoch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, s := range g.subs {
		if name.Epoch.Stale(e) && s.settle(rank) {
			delete(g.subs, name)
		}
	}
}

// Close has nothing to release: the garbage collector frees a communicator once no rank refers
// to it.
func (c *Comm) Close() error {
	c.own.attention.Store(closed)
	return nil
}

// TrySend delivers the message to a receive that waits for it. Otherwise it buffers the
// message, if it is short.
func (c *Comm) TrySend(dest, tag int, epoch transport.Epoch, w signature.Word, buf []byte) bool {
	if epoch != c.own.Live() {
		return false // Isend says why
	}
	m := match.Envelope{Key: match.Key{Epoch: epoch, Source: c.rank, Tag: tag}, Bytes: len(buf), Signature: w}
	p := &c.g.ports[dest]
	p.mu.Lock()
	if (len(buf) > EagerLimit || p.isFull(tag)) && !p.expects(m.Key) || p.HasLostAny() || c.own.process.dead.Load() {
		p.mu.Unlock()
		return false
	}
	if transport.IsCollective(tag) && !p.Recalls(tag, w) {
		if odd := p.Contradicts(&m); odd != nil {
			p.mu.Unlock()
			p.halt(odd)
			return false
		}
	}
	probes, recv := p.Take(&m)
	fill := recv != nil && recv.Kind == transport.Receiving
	if !fill {
		p.buffer(&m, buf, false, recv)
	}
	p.mu.Unlock()
	if probes != nil {
		p.complete(probes)
	}
	if recv != nil {
		p.served(recv)
		if fill {
			recv.Fill(recv.Status, buf, false)
		}
		recv.Done.Completed(recv)
	}
	return true
}

// Isend delivers the message to a receive that waits for it, or queues it.
func (c *Comm) Isend(r *transport.Request) {
	r.Kind, r.Where, r.Err = transport.Sending, nil, nil
	m := match.Envelope{Key: match.Key{Epoch: r.Epoch, Source: c.rank, Tag: r.Tag}, Bytes: len(r.Buf), Signature: r.Signature}
	r.Status = m.Status()
	if own := c.own; r.Epoch != own.Live() {
		own.sending.mu.Lock()
		r.Err = own.Barred(r)
		own.sending.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	p := &c.g.ports[r.Peer]
	p.mu.Lock()
	// Deaths are looked up under the mu of the port where r would wait. If endAfterDeath comes
	// later, it finds r there.
	if r.Err = p.DeathFor(r); c.own.process.dead.Load() {
		r.Err = transport.ErrDied
	}
	if r.Err != nil {
		p.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	if odd := p.Contradicts(&m); odd != nil {
		p.mu.Unlock()
		p.halt(odd) // m is then dropped, unless it is too long to be buffered
		p.mu.Lock()
	}
	probes, recv := p.Take(&m)
	if recv != nil && recv.Kind == transport.Receiving {
		p.mu.Unlock()
		p.served(recv)
		p.complete(probes)
		recv.Fill(r.Status, r.Buf, r.Mode&transport.Shared != 0)
		recv.Done.Completed(recv)
		r.Done.Completed(r)
		return
	}
	eager := r.Mode&transport.Synchronous == 0 && !p.isFull(r.Tag) && (len(r.Buf) <= EagerLimit || r.Mode&transport.Shared != 0)
	var late *process
	if eager {
		p.buffer(&m, r.Buf, r.Mode&transport.Shared != 0, recv)
	} else {
		var listed bool
		late, listed = c.own.list(p, &m, r, recv)
		eager = !listed
		if !listed && recv != nil { // recv ends when its rank leaves the epoch, too
			p.Post(recv)
			recv = nil
		}
	}
	p.mu.Unlock()
	p.complete(probes)
	if eager {
		r.Done.Completed(r)
	}
	if recv != nil {
		p.served(recv)
		recv.Done.Completed(recv)
	}
	late.expireIfLate()
}

// Irecv takes a message that has arrived, or waits for one.
func (c *Comm) Irecv(r *transport.Request) {
	r.Kind, r.Where, r.Err = transport.Receiving, nil, nil
	p := c.own
	p.mu.Lock()
	if r.Err = p.barred(r); r.Err != nil {
		p.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	m := p.Match(r)
	if m == nil {
		c.wait(r)
		return
	}
	c.give(r, m)
}

// give ends a receive with a message that is in no queue. It unlocks mu.
func (c *Comm) give(r *transport.Request, m *message) {
	p := c.own
	send := m.Send
	if send == nil { // copied under the lock: it is short
		r.Fill(r.Status, m.bytes, m.shared)
		p.recycle(m)
		p.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	p.unsend(m) // from now on neither Cancel nor the sender's Advance ends it
	p.mu.Unlock()
	c.g.ports[m.Source].unlist(m)
	r.Fill(r.Status, send.Buf, m.shared)
	r.Done.Completed(r)
	send.Done.Completed(send)
}

// Probe looks for a message that has arrived, or waits for one.
func (c *Comm) Probe(r *transport.Request) { c.probe(r, transport.Probing) }

// Mprobe takes a message that has arrived, or waits for one.
func (c *Comm) Mprobe(r *transport.Request) { c.probe(r, transport.Mprobing) }

func (c *Comm) probe(r *transport.Request, kind transport.Kind) {
	r.Kind, r.Where, r.Err = kind, nil, nil
	p := c.own
	p.mu.Lock()
	if r.Err = p.barred(r); r.Err == nil && p.Match(r) == nil {
		c.wait(r)
		return
	}
	p.mu.Unlock()
	r.Done.Completed(r)
}

// Mrecv receives the message that r has taken.
func (c *Comm) Mrecv(r *transport.Request) {
	r.Kind, r.Err = transport.Receiving, nil
	p := c.own
	p.mu.Lock()
	if r.Err = p.barred(r); r.Err == nil {
		var m *message
		if m, r.Err = p.Redeem(r); m != nil {
			c.give(r, m)
			return
		} else if r.Err == nil {
			c.wait(r)
			return
		}
	}
	p.mu.Unlock()
	r.Done.Completed(r)
}

// wait posts r, or ends it if its message cannot come. It unlocks mu.
func (c *Comm) wait(r *transport.Request) {
	p := c.own
	if r.Err = p.DeathFor(r); r.Err != nil {
		p.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	p.Post(r)
	var late *process
	if r.Peer >= 0 && p.counts(r.Peer, r.Tag) {
		late = p.g.ports[r.Peer].awaits(r.Epoch)
	}
	ofCall := r.Tag < transport.AnyTag
	p.mu.Unlock()
	if ofCall {
		p.g.changed()
	}
	late.expireIfLate()
}

// Cancel removes r from the queue in which it waits. It returns false if r no longer waits.
func (c *Comm) Cancel(r *transport.Request) bool {
	p := c.own
	if r.Kind == transport.Sending {
		p = &c.g.ports[r.Peer]
	}
	p.mu.Lock()
	if m, ok := r.Where.(*message); ok {
		p.Drop(&m.Node)
		m.Cancelled = true
		p.unsend(m)
		p.mu.Unlock()
		c.own.unlist(m)
	} else {
		posted := p.Withdraw(r)
		p.mu.Unlock()
		if !posted {
			return false
		}
		p.served(r)
	}
	r.Err = transport.ErrCancelled
	r.Done.Completed(r)
	return true
}

// Advance moves this rank to the next epoch.
func (c *Comm) Advance(generation int, cause error) {
	c.own.endAll(func() *transport.Request { return c.own.Advance(generation, cause) }, cause)
	c.g.forget(c.rank, c.Epoch())
}

// Revoke ends all requests of this rank.
func (c *Comm) Revoke(cause error) {
	c.own.endAll(func() *transport.Request { return c.own.Revoke(cause) }, cause)
}

// endAll calls leave, and ends with cause the requests that are over then.
func (p *port) endAll(leave func() *transport.Request, cause error) {
	p.mu.Lock()
	p.sending.mu.Lock()
	posted := leave()
	p.sending.mu.Unlock()
	p.mu.Unlock()
	p.served(posted)
	// Listed messages of other ranks stay here until their senders end them; no receive finds
	// them. This rank's own listed sends end now.
	p.endSends(func(m *message) bool { return p.IsOver(m.Epoch) }, cause)
	end(posted, cause)
}

// EachPending visits this rank's requests, which wait in its own port and in others.
func (c *Comm) EachPending(visit func(*transport.Request)) {
	p := c.own
	p.mu.Lock()
	for r := range p.Posted.All() {
		visit(r)
	}
	p.mu.Unlock()
	for _, m := range p.listed() {
		to := &c.g.ports[m.dest]
		to.mu.Lock()
		if m.Send != nil {
			visit(m.Send)
		}
		to.mu.Unlock()
	}
}

// Kept returns the number of messages to this rank that wait for receives.
func (c *Comm) Kept() int {
	c.own.mu.Lock()
	defer c.own.mu.Unlock()
	return c.own.Arrived.Len() + c.own.Probed.Len()
}

// EachUnreceived visits the messages that wait in this rank's queue.
func (c *Comm) EachUnreceived(visit func(transport.Status)) {
	c.own.mu.Lock()
	defer c.own.mu.Unlock()
	c.own.EachUnreceived(visit)
}

// Looked returns how many messages and receives were examined to find a match.
func (c *Comm) Looked() int {
	c.own.mu.Lock()
	defer c.own.mu.Unlock()
	return c.own.Looked()
}

// complete ends a list of probes.
func (p *port) complete(probes *transport.Request) {
	p.served(probes)
	end(probes, nil)
}
