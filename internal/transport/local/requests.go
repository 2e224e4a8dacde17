package local

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// EagerLimit is the length in bytes up to which a message is buffered if no receive for it has
// been posted. A longer send completes when its message is received.
const EagerLimit = 4096

// TrySend delivers the message to a receive that waits for it. Otherwise it buffers the
// message, if it is short.
func (c *Comm) TrySend(dest, tag int, epoch transport.Epoch, w signature.Word, buf []byte) bool {
	if epoch != c.own.Live() {
		return false // Isend says why
	}
	m := match.Envelope{Key: match.Key{Epoch: epoch, Source: c.rank, Tag: tag}, Bytes: len(buf), Signature: w}
	s := &c.comm.sides[dest]
	s.mu.Lock()
	if (len(buf) > EagerLimit || s.isFull(tag)) && !s.expects(m.Key) || s.HasLostAny() || c.own.process.dead.Load() {
		s.mu.Unlock()
		return false
	}
	if transport.IsCollective(tag) && !s.Recalls(tag, w) {
		if odd := s.Contradicts(&m); odd != nil {
			s.mu.Unlock()
			s.halt(odd)
			return false
		}
	}
	probes, recv := s.Take(&m)
	received, long := recv != nil && recv.Kind == transport.Receiving, len(buf) > EagerLimit
	counted := received && (long || transport.IsCollective(tag))
	switch {
	case !received:
		s.buffer(&m, buf, false, recv)
	case !long:
		recv.Fill(recv.Status, buf, false)
	}
	if counted {
		s.begin()
	}
	s.mu.Unlock()
	if probes != nil {
		s.complete(probes)
	}
	if recv == nil {
		return true
	}
	s.served(recv)
	if received && long {
		recv.Fill(recv.Status, buf, false)
	}
	if counted {
		s.tell(recv)
	} else {
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
	s := &c.comm.sides[r.Peer]
	s.mu.Lock()
	// Deaths are looked up under the mu of the side where r would wait. If endAfterDeath comes
	// later, it finds r there.
	if r.Err = s.DeathFor(r); c.own.process.dead.Load() {
		r.Err = transport.ErrDied
	}
	if r.Err != nil {
		s.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	if odd := s.Contradicts(&m); odd != nil {
		s.mu.Unlock()
		s.halt(odd) // m is then dropped, unless it is too long to be buffered
		s.mu.Lock()
	}
	probes, recv := s.Take(&m)
	if recv != nil && recv.Kind == transport.Receiving {
		s.begin()
		c.own.begin() // the send may be another goroutine's
		s.mu.Unlock()
		s.served(recv)
		s.complete(probes)
		recv.Fill(r.Status, r.Buf, r.Mode&transport.Shared != 0)
		s.tell(recv)
		c.own.tell(r)
		return
	}
	eager := r.Mode&transport.Synchronous == 0 && !s.isFull(r.Tag) && (len(r.Buf) <= EagerLimit || r.Mode&transport.Shared != 0)
	stays := true
	if eager {
		s.buffer(&m, r.Buf, r.Mode&transport.Shared != 0, recv)
	} else {
		var listed bool
		stays, listed = c.own.list(s, &m, r, recv)
		eager = !listed
		if !listed && recv != nil { // recv ends when its rank leaves the epoch, too
			s.Post(recv)
			recv = nil
		}
	}
	s.mu.Unlock()
	s.complete(probes)
	if eager {
		r.Done.Completed(r)
	} else if transport.IsCollective(m.Tag) {
		c.comm.changed()
	}
	if recv != nil {
		s.served(recv)
		recv.Done.Completed(recv)
	}
	if !stays {
		c.comm.expireIfNeeded(s.process)
	}
}

// Irecv takes a message that has arrived, or waits for one.
func (c *Comm) Irecv(r *transport.Request) {
	r.Kind, r.Where, r.Err = transport.Receiving, nil, nil
	s := c.own
	s.mu.Lock()
	if r.Err = s.barred(r); r.Err != nil {
		s.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	m := s.Match(r)
	if m == nil {
		c.wait(r)
		return
	}
	c.give(r, m)
}

// give ends a receive with a message that is in no queue. It unlocks mu.
func (c *Comm) give(r *transport.Request, m *message) {
	s := c.own
	send := m.Send
	if send == nil { // copied under the lock: it is short
		r.Fill(r.Status, m.bytes, m.shared)
		s.recycle(m)
		s.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	sender := &c.comm.sides[m.Source]
	s.begin()
	sender.begin()
	s.unsend(m) // from now on neither Cancel nor the sender's Advance ends it
	s.mu.Unlock()
	sender.unlist(m)
	r.Fill(r.Status, send.Buf, m.shared)
	s.tell(r)
	sender.tell(send)
}

// Probe looks for a message that has arrived, or waits for one.
func (c *Comm) Probe(r *transport.Request) { c.probe(r, transport.Probing) }

// Mprobe takes a message that has arrived, or waits for one.
func (c *Comm) Mprobe(r *transport.Request) { c.probe(r, transport.Mprobing) }

func (c *Comm) probe(r *transport.Request, kind transport.Kind) {
	r.Kind, r.Where, r.Err = kind, nil, nil
	s := c.own
	s.mu.Lock()
	if r.Err = s.barred(r); r.Err == nil && s.Match(r) == nil {
		c.wait(r)
		return
	}
	s.mu.Unlock()
	r.Done.Completed(r)
}

// Mrecv receives the message that r has taken.
func (c *Comm) Mrecv(r *transport.Request) {
	r.Kind, r.Err = transport.Receiving, nil
	s := c.own
	s.mu.Lock()
	if r.Err = s.barred(r); r.Err == nil {
		var m *message
		if m, r.Err = s.Redeem(r); m != nil {
			c.give(r, m)
			return
		} else if r.Err == nil {
			c.wait(r)
			return
		}
	}
	s.mu.Unlock()
	r.Done.Completed(r)
}

// wait posts r, or ends it if its message cannot come. It unlocks mu.
func (c *Comm) wait(r *transport.Request) {
	s := c.own
	if r.Err = s.DeathFor(r); r.Err != nil {
		s.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	s.Post(r)
	peer, stays := r.Peer, true // r may have ended when mu is unlocked
	if peer >= 0 && s.counts(peer, r.Tag) {
		stays = s.comm.sides[peer].awaits()
	}
	ofCall := r.Tag < transport.AnyTag
	s.mu.Unlock()
	if ofCall {
		s.comm.changed()
	}
	if !stays {
		s.comm.expireIfNeeded(s.comm.sides[peer].process)
	}
}

// Cancel removes r from the queue in which it waits. It returns false if r no longer waits.
func (c *Comm) Cancel(r *transport.Request) bool {
	s := c.own
	if r.Kind == transport.Sending {
		s = &c.comm.sides[r.Peer]
	}
	s.mu.Lock()
	if m, ok := r.Where.(*message); ok {
		s.Drop(&m.Node)
		m.Cancelled = true
		s.unsend(m)
		s.mu.Unlock()
		c.own.unlist(m)
	} else {
		posted := s.Withdraw(r)
		s.mu.Unlock()
		if !posted {
			return false
		}
		s.served(r)
	}
	r.Err = transport.ErrCancelled
	r.Done.Completed(r)
	return true
}

// complete ends a list of probes.
func (s *side) complete(probes *transport.Request) {
	s.served(probes)
	end(probes, nil)
}
