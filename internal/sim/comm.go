package sim

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// EagerLimit is the length in bytes up to which a message is buffered, as in package local. A
// message whose bytes are Shared is buffered at any length, a synchronous one never. The send of a
// message that is not buffered completes one delay after a receive has matched it.
const EagerLimit = 4096

// A communicator is what all ranks of a communicator share.
type communicator struct {
	w       *World
	id      int           // for traces
	members []int32       // ranks of the world; nil: all
	index   map[int32]int // the inverse of members
	sides   []side
	missing int // how many sides are not made yet
	subs    map[transport.Name]*communicator
}

func (w *World) newCommunicator(members []int32, n int, e transport.Epoch) *communicator {
	c := &communicator{w: w, id: w.communicators, members: members, missing: n, sides: make([]side, n)}
	w.communicators++
	if members != nil {
		c.index = make(map[int32]int, n)
	}
	for i := range c.sides {
		p := &w.ranks[i]
		if members != nil {
			p = &w.ranks[members[i]]
			c.index[members[i]] = i
		}
		s := &c.sides[i]
		s.comm, s.p, s.rank = c, p, i
		s.Begin(e)
	}
	return c
}

// rankOf returns the rank in c of a rank of the world, or nobody.
func (c *communicator) rankOf(rank int32) int {
	if c.members == nil {
		return int(rank)
	}
	if r, ok := c.index[rank]; ok {
		return r
	}
	return nobody
}

var _ transport.Comm = (*side)(nil)

func (s *side) Rank() int { return s.rank }
func (s *side) Size() int { return len(s.comm.sides) }

// Machine puts all ranks on one machine.
func (s *side) Machine(int) int { return 0 }

func (s *side) Features() transport.Features {
	return transport.Features{Name: "sim", Deaths: true, SharedCores: s.comm.w.cfg.SharedCores}
}

// make makes this side usable. Until then it only keeps messages.
func (s *side) make() {
	if s.made {
		return
	}
	s.made = true
	s.comm.missing--
	s.p.sides = append(s.p.sides, s)
	for _, victim := range s.p.known {
		if r := s.comm.rankOf(victim); r >= 0 {
			s.Lose(r)
		}
	}
}

// Sub returns at once: the first member to call it makes the communicator, and the others find it
// by its name.
func (s *side) Sub(name transport.Name, members []int) (transport.Comm, error) {
	if s.p.dead {
		return nil, transport.ErrDied
	}
	if err := name.Check(); err != nil {
		return nil, err
	}
	c := s.comm
	sub := c.subs[name]
	if sub == nil {
		n, of := len(c.sides), c.members
		if members != nil {
			n, of = len(members), make([]int32, len(members))
			for i, r := range members {
				of[i] = c.sides[r].p.rank
			}
		}
		sub = c.w.newCommunicator(of, n, name.Epoch)
		if c.subs == nil {
			c.subs = make(map[transport.Name]*communicator)
		}
		c.subs[name] = sub
	}
	own := &sub.sides[sub.rankOf(s.p.rank)]
	own.make()
	if sub.missing == 0 {
		delete(c.subs, name)
	}
	return own, nil
}

// Close drops messages that arrive from now on.
func (s *side) Close() error {
	s.closed = true
	s.p.sides = slices.DeleteFunc(s.p.sides, func(other *side) bool { return other == s })
	return nil
}

// TrySend sends if the message would be buffered anyway.
func (s *side) TrySend(dest, tag int, epoch transport.Epoch, w signature.Word, buf []byte) bool {
	if s.p.dead || epoch != s.Live() || len(buf) > EagerLimit || s.HasLostAny() {
		return false // Isend says why
	}
	s.launch(dest, tag, epoch, w, buf, false)
	return true
}

// Isend completes at once if the message is buffered: the sender's clock has then advanced by the
// cost of sending.
func (s *side) Isend(r *transport.Request) {
	if !s.begin(r, transport.Sending) {
		return
	}
	if r.Err = s.DeathFor(r); r.Err != nil {
		r.Done.Completed(r)
		return
	}
	shared := r.Mode&transport.Shared != 0
	if r.Mode&transport.Synchronous == 0 && (shared || len(r.Buf) <= EagerLimit) {
		s.launch(r.Peer, r.Tag, r.Epoch, r.Signature, r.Buf, shared)
		r.Done.Completed(r)
		return
	}
	m := s.launch(r.Peer, r.Tag, r.Epoch, r.Signature, r.Buf, true)
	m.shared, m.Send, r.Where = shared, r, m
	m.sending.Of = m
	s.sending.Push(&m.sending)
}

// Irecv takes a message that has arrived, or waits for one.
func (s *side) Irecv(r *transport.Request) {
	if !s.begin(r, transport.Receiving) {
		return
	}
	if m := s.Match(r); m != nil {
		s.receive(r, m)
		return
	}
	s.wait(r)
}

// TryRecv is Irecv.
func (s *side) TryRecv(r *transport.Request) (received bool) {
	s.Irecv(r)
	return false
}

// Probe looks for a message that has arrived, or waits for one.
func (s *side) Probe(r *transport.Request) { s.probe(r, transport.Probing) }

// Mprobe takes a message that has arrived, or waits for one.
func (s *side) Mprobe(r *transport.Request) { s.probe(r, transport.Mprobing) }

func (s *side) probe(r *transport.Request, kind transport.Kind) {
	if !s.begin(r, kind) {
		return
	}
	if s.Match(r) != nil {
		r.Done.Completed(r)
		return
	}
	s.wait(r)
}

// Mrecv receives the message that r has taken.
func (s *side) Mrecv(r *transport.Request) {
	taken := r.Where
	if !s.begin(r, transport.Receiving) {
		return
	}
	r.Where = taken
	switch m, err := s.Redeem(r); {
	case m != nil:
		s.receive(r, m)
	case err != nil:
		s.end(r, err)
	default:
		s.wait(r)
	}
}

// begin reports whether r can start. If not, it ends r, unless this rank is dead.
func (s *side) begin(r *transport.Request, kind transport.Kind) bool {
	if s.p.dead {
		return false
	}
	r.Kind, r.Where, r.Err = kind, nil, nil
	if kind == transport.Sending {
		r.Status = transport.Status{Source: s.rank, Tag: r.Tag, Bytes: len(r.Buf), Signature: r.Signature}
	}
	if r.Err = s.Barred(r); r.Err != nil {
		r.Done.Completed(r)
	}
	return r.Err == nil
}

// wait posts r, unless a death makes it impossible.
func (s *side) wait(r *transport.Request) {
	if r.Err = s.DeathFor(r); r.Err != nil {
		r.Done.Completed(r)
		return
	}
	s.Post(r)
}

// Cancel withdraws r if it still waits in a queue. It also takes a message under way back at once,
// which no network could.
func (s *side) Cancel(r *transport.Request) bool {
	if s.p.dead {
		return false
	}
	if m, ok := r.Where.(*message); ok && m.state != matched {
		s.unsend(m)
		m.withdraw()
		m.Cancelled = true
	} else if ok || !s.Withdraw(r) {
		return false
	}
	s.end(r, transport.ErrCancelled)
	return true
}

// Advance moves this rank to the next epoch.
func (s *side) Advance(generation int, cause error) {
	if !s.p.dead {
		s.endAll(s.Matcher.Advance(generation, cause), cause, everything)
	}
}

// Quiesce calls then after what this rank is doing now.
func (s *side) Quiesce(then func()) {
	s.comm.w.push(s.p.clock(), &event{rank: s.p.rank, f: then})
}

// Revoke ends all requests of this rank, now and later.
func (s *side) Revoke(cause error) {
	if !s.p.dead {
		s.endAll(s.Matcher.Revoke(cause), cause, everything)
	}
}

func everything(*transport.Request) bool { return true }

// Poke sends the listener's messages, each when the network interface is free for it.
func (s *side) Poke() {
	if !s.poked && s.listener != nil {
		s.poked = true
		s.pull()
	}
}

func (s *side) pull() {
	to, payload, ok := s.listener.Next()
	switch {
	case s.p.dead:
		return
	case !ok:
		s.poked = false
		return
	case !s.HasLost(to):
		s.launch(to, 0, s.Epoch(), 0, payload, true).forListener = true
	}
	s.comm.w.push(max(s.p.clock(), s.p.link), &event{rank: s.p.rank, f: s.pull})
}

// Listen gives l the messages that have arrived and those that will, and the deaths that this rank
// knows of or learns of.
func (s *side) Listen(l transport.Listener) {
	s.listener = l
	early := s.early
	s.early = nil
	for _, m := range early {
		s.hand(m)
	}
	for _, r := range s.Dead() {
		if !s.p.dead {
			l.Died(r)
		}
	}
	s.Poke()
}

// Die kills this rank after it has sent its messages. Unlike in package local, its operations do
// not end, because no goroutine is left to learn of it.
func (s *side) Die() { s.p.die(max(s.p.clock(), s.p.injected)) }

// Leave counts the rank as having left.
func (s *side) Leave(bool) {
	if !s.p.dead {
		s.comm.w.left++
		s.comm.w.trace(int(s.p.rank), "leaves")
	}
}

// Release does nothing, because ranks need not learn which of them others need.
func (s *side) Release() {}

// HasReturned returns false: a rank of a simulation that has left is needed by none, and dies only
// by itself.
func (s *side) HasReturned(int) bool { return false }

// Look does nothing: ranks that have left live, and need not learn which ranks need them.
func (s *side) Look() {}

// EachPending visits the requests that have not ended.
func (s *side) EachPending(visit func(*transport.Request)) {
	for r := range s.Posted.All() {
		visit(r)
	}
	for n := range s.sending.All() {
		visit(n.Of.Send)
	}
}
