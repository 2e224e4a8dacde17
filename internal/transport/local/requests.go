package local

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// EagerLimit is the length in bytes up to which a message is buffered if no receive for it has
// been posted. A longer send completes when its message is received.
//
// A request that waits is in one queue, or is the Send of one message. The goroutine that takes it
// from there, with the mu of that side, is the only one that may touch it from then on: it fills
// it, takes it out of the counts of its peer (served, unsend), and completes it when it holds no
// lock. All others find the request gone and leave it alone. From the call of Completed on, the
// request is its owner's again, and may be in use for another operation.
const EagerLimit = 4096

// TrySend delivers the message to a receive that waits for it. Otherwise it buffers the
// message, if it is short.
func (s *Comm) TrySend(dest, tag int, epoch transport.Epoch, w signature.Word, buf []byte) bool {
	if epoch != s.Live() {
		return false // Isend says why
	}
	m := match.Envelope{Key: match.Key{Epoch: epoch, Source: s.rank, Tag: tag}, Bytes: len(buf), Signature: w}
	// Live was read without a lock, and this rank may leave the epoch now. That does no harm: no
	// request is left behind, and a receiver that has left the epoch drops the message (P3).
	to := &s.comm.sides[dest]
	to.mu.Lock()
	// All of this is looked up with the mu of the receiving side: a receive that is posted, and a
	// death that is noted, need the same mu. TrySend only finds out whether anything is in the way.
	// Isend says what that means for a request.
	if (len(buf) > EagerLimit || to.isFull(tag)) && !to.expects(m.Key) || to.HasLostAny() || s.process.dead.Load() {
		to.mu.Unlock()
		return false
	}
	probes, recv := to.Take(&m)
	received, long := recv != nil && recv.Kind == transport.Receiving, len(buf) > EagerLimit
	// A long message is copied without a lock, and the end of a collective operation's request may
	// use more buffers. Quiesce has to wait for both. A short message is copied with mu, before the
	// receiver can leave the epoch. The sender is not counted: buf is in use only until TrySend
	// returns.
	counted := received && (long || transport.IsCollective(tag))
	switch {
	case !received:
		to.buffer(&m, buf, false, recv)
	case !long:
		recv.Fill(recv.Status, buf, false)
	}
	if counted {
		to.begin()
	}
	// recv is in no queue any more, so only this goroutine ends it.
	to.mu.Unlock()
	if probes != nil {
		to.complete(probes)
	}
	if recv == nil {
		return true
	}
	to.served(recv)
	if received && long {
		recv.Fill(recv.Status, buf, false)
	}
	if counted {
		to.tell(recv)
	} else {
		recv.Done.Completed(recv)
	}
	return true
}

// Isend delivers the message to a receive that waits for it, or queues it.
func (s *Comm) Isend(r *transport.Request) {
	r.Kind, r.Where, r.Err = transport.Sending, nil, nil
	m := match.Envelope{Key: match.Key{Epoch: r.Epoch, Source: s.rank, Tag: r.Tag}, Bytes: len(r.Buf), Signature: r.Signature}
	r.Status = m.Status()
	// No request of an epoch that is over may be queued: the Advance that would have ended it has
	// been here already.
	if r.Epoch != s.Live() {
		// The cause changes under both mu and sending.mu, so either is enough to read it.
		s.sending.mu.Lock()
		r.Err = s.Barred(r)
		s.sending.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	to := &s.comm.sides[r.Peer]
	to.mu.Lock()
	// Deaths are looked up under the mu of the side where r would wait. If endAfterDeath comes
	// later, it finds r there.
	if r.Err = to.DeathFor(r); s.process.dead.Load() {
		r.Err = transport.ErrDied
	}
	if r.Err != nil {
		to.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	// Probes leave the message, so they may end before it is copied or queued. Recv takes the
	// message; if it is an Mprobe, the message is kept for it below.
	probes, recv := to.Take(&m)
	if recv != nil && recv.Kind == transport.Receiving {
		// Both buffers are used without a lock below. Neither rank's Quiesce calls back before.
		to.begin()
		s.begin() // the send may be another goroutine's
		to.mu.Unlock()
		to.served(recv)
		to.complete(probes)
		recv.Fill(r.Status, r.Buf, r.Mode&transport.Shared != 0)
		to.tell(recv)
		s.tell(r)
		return
	}
	// An eager send is in no list: the message has bytes of its own, or bytes that never change,
	// and whatever becomes of it no longer concerns the sender. Any other send lends its buffer to
	// the message until a receive has copied it, and is listed, so this rank's Advance can end it.
	eager := r.Mode&transport.Synchronous == 0 && !to.isFull(r.Tag) && (len(r.Buf) <= EagerLimit || r.Mode&transport.Shared != 0)
	stays := true
	if eager {
		to.buffer(&m, r.Buf, r.Mode&transport.Shared != 0, recv)
	} else {
		var listed bool
		stays, listed = s.list(to, &m, r, recv)
		eager = !listed
		if !listed && recv != nil { // recv ends when its rank leaves the epoch, too
			// It is still counted in awaited of its peer, because served was not called for it.
			to.Post(recv)
			recv = nil
		}
	}
	to.mu.Unlock()
	to.complete(probes)
	// A listed r may have ended when mu is free, and be in use again. So it is not touched any
	// more, and look gets the tag and the rank from elsewhere.
	if eager {
		r.Done.Completed(r)
	}
	if recv != nil {
		to.served(recv)
		recv.Done.Completed(recv)
	}
	s.look(m.Tag, to.rank, stays)
}

// look is called when a request with a tag waits for peer, and stays is what awaits has returned.
// If the peer has left or released the communicator, a request of a collective call ends or, if
// processes are mortal and it has left, the peer dies. It is called without locks, because it may
// end other requests, and whole processes. By then the request is in its queue. So a rank that
// leaves at the same time finds the request, or is found here (see leave).
func (s *Comm) look(tag, peer int, stays bool) {
	if !stays {
		s.comm.expireIfNeeded(&s.comm.sides[peer])
	}
	if transport.IsCollective(tag) && s.comm.absent.Load() > 0 {
		s.endForsaken()
	}
}

// Irecv takes a message that has arrived, or waits for one.
func (s *Comm) Irecv(r *transport.Request) {
	if s.TryRecv(r) {
		r.Done.Completed(r)
	}
}

// TryRecv is Irecv for a caller that handles a message which has arrived.
func (s *Comm) TryRecv(r *transport.Request) (received bool) {
	r.Kind, r.Where, r.Err = transport.Receiving, nil, nil
	s.mu.Lock()
	// Until r is in the queue mu is not unlocked. So an Advance, or a death, is seen here, or finds
	// r in the queue and ends it.
	if r.Err = s.barred(r); r.Err != nil {
		s.mu.Unlock()
		r.Done.Completed(r)
		return false
	}
	m := s.Match(r)
	switch {
	case m != nil:
		return s.give(r, m)
	case r.Soon != nil:
		s.mu.Unlock()
		// Without mu, because the goroutines that run now may be senders to this rank. Soon is nil
		// after that, so r yields once. All is looked up again, because the epoch may have ended
		// meanwhile.
		r.Soon.Yield()
		r.Soon = nil
		return s.TryRecv(r)
	}
	s.wait(r)
	return false
}

// give ends a receive with a message that is in no queue, as TryRecv does. It unlocks mu.
func (s *Comm) give(r *transport.Request, m *message) (received bool) {
	send := m.Send
	// A buffered message is copied before mu is free. So an Advance that needs mu comes after the
	// copy, and Quiesce need not wait for it (P4).
	if send == nil { // copied under the lock: it is short
		r.Fill(r.Status, m.bytes, m.shared)
		s.recycle(m)
		s.mu.Unlock()
		if r.Err != nil {
			r.Done.Completed(r)
			return false
		}
		return true
	}
	sender := &s.comm.sides[m.Source]
	// Both sides are counted while mu is held, and so before either rank can find that the request
	// has gone.
	s.begin()
	sender.begin()
	s.unsend(m) // from now on neither Cancel nor the sender's Advance ends it
	s.mu.Unlock()
	// The message is in no queue, and the send is this goroutine's. Its sender may still find it
	// listed, in endSends, but withdrawIf finds no Send there. A message that was listed is never
	// recycled for that reason.
	sender.unlist(m)
	r.Fill(r.Status, send.Buf, m.shared)
	s.tell(r)
	// Only now: the bytes were copied from the sender's own buffer, which is the program's again
	// from here on (F4).
	sender.tell(send)
	return false
}

// Probe looks for a message that has arrived, or waits for one.
func (s *Comm) Probe(r *transport.Request) { s.probe(r, transport.Probing) }

// Mprobe takes a message that has arrived, or waits for one.
func (s *Comm) Mprobe(r *transport.Request) { s.probe(r, transport.Mprobing) }

func (s *Comm) probe(r *transport.Request, kind transport.Kind) {
	r.Kind, r.Where, r.Err = kind, nil, nil
	s.mu.Lock()
	// A message is looked for before the death of a peer is. What a dead process had sent can still
	// be received, and only a request that would wait for more ends with the death (see wait).
	if r.Err = s.barred(r); r.Err == nil && s.Match(r) == nil {
		s.wait(r)
		return
	}
	s.mu.Unlock()
	r.Done.Completed(r)
}

// Mrecv receives the message that r has taken. If the sender has withdrawn that message, r may have
// to wait, without any that matches it, until this rank leaves the epoch too: see Redeem.
func (s *Comm) Mrecv(r *transport.Request) {
	r.Kind, r.Err = transport.Receiving, nil
	s.mu.Lock()
	if r.Err = s.barred(r); r.Err == nil {
		var m *message
		if m, r.Err = s.Redeem(r); m != nil {
			if s.give(r, m) {
				r.Done.Completed(r)
			}
			return
		} else if r.Err == nil {
			s.wait(r)
			return
		}
	}
	s.mu.Unlock()
	r.Done.Completed(r)
}

// wait posts r, or ends it if its message cannot come. It unlocks mu.
func (s *Comm) wait(r *transport.Request) {
	if r.Err = s.DeathFor(r); r.Err != nil {
		s.mu.Unlock()
		r.Done.Completed(r)
		return
	}
	s.Post(r)
	peer, stays := r.Peer, true // r may have ended when mu is unlocked
	if s.counts(peer) {
		// It is counted before mu is free. Otherwise the goroutine that takes r from the queue
		// could take it out of the count first.
		stays = s.comm.sides[peer].awaits()
	}
	tag := r.Tag
	s.mu.Unlock()
	s.look(tag, peer, stays)
}

// Cancel removes r from the queue in which it waits. It returns false if r no longer waits.
func (s *Comm) Cancel(r *transport.Request) bool {
	to := s
	if r.Kind == transport.Sending {
		to = &s.comm.sides[r.Peer]
	}
	// Where r waits changes only with this mu. A match clears Where.
	to.mu.Lock()
	// It is set when r is queued and cleared when r is taken, so it says whether r is still there.
	if m, ok := r.Where.(*message); ok {
		to.Drop(&m.Node)
		// If an Mprobe has taken the message, its Mrecv learns by this why the message is gone.
		m.Cancelled = true
		to.unsend(m)
		to.mu.Unlock()
		s.unlist(m)
	} else {
		posted := to.Withdraw(r)
		to.mu.Unlock()
		if !posted {
			return false
		}
		to.served(r)
	}
	// r was taken from its queue above, so nobody else ends it.
	r.Err = transport.ErrCancelled
	r.Done.Completed(r)
	return true
}

// complete ends a list of probes.
func (s *Comm) complete(probes *transport.Request) {
	s.served(probes)
	end(probes, nil)
}
