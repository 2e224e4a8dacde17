package node

import (
	"cmp"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// TrySend sends a message if it can be eager and nothing bars it. It returns false if it has not
// sent it. A caller that gets false calls Isend, which finds the reason and reports it. So TrySend
// need not know which error it is, and may return false in doubt.
func (c *comm) TrySend(dest, tag int, epoch transport.Epoch, w signature.Word, buf []byte) bool {
	e := c.e
	// This needs no lock, because far does not change after Begin. A long message is not worth the
	// lock here.
	if len(buf) > max(nearLimit, e.far) {
		return false
	}
	// All conditions are checked, and the message is sent, under one hold of mu. So no Advance
	// comes in between, and no message is sent for an epoch that its sender has left.
	e.lock()
	process := c.process(dest)
	lead, far := e.leads[process].inKind(tag)
	ok := epoch == c.Live() && e.err == nil && !c.HasLostAny() && !c.liveness.expired && len(buf) <= e.eager(process) && !far
	if ok {
		lead.grow(len(buf))
		e.sendPacket(process, &header{kind: whole, to: c.context, epoch: epoch, tag: tag, signature: w, length: len(buf)}, buf)
		// Sending fails if the receiver has written garbage into the ring's memory. Then the engine
		// has failed, and Isend returns that error.
		ok = e.err == nil
	}
	e.unlock()
	return ok
}

// Isend sends a short message at once (eager), and offers a long or synchronous one. It offers a
// short one too if its lead is far.
func (c *comm) Isend(r *transport.Request) {
	c.e.lock()
	defer c.e.unlock()
	c.send(r)
}

// send begins a send; the caller holds mu. If r has ended then, it may be in use again: see end.
func (c *comm) send(r *transport.Request) {
	e := c.e
	// This takes packets. One of them may halt this rank or make the engine fail, so it comes
	// before the checks.
	e.lookForCredit(c.process(r.Peer), r.Tag)
	r.Kind, r.Where, r.Err = transport.Sending, nil, nil
	// The Status has the send's own Signature, so that end can complete a Light send at once: there
	// is no other call to compare it with.
	r.Status = transport.Status{Source: c.rank, Tag: r.Tag, Bytes: len(r.Buf), Signature: r.Signature}
	// An epoch that has ended comes before a death: the request belongs to the error that ended it.
	if err := cmp.Or(c.barred(r), c.DeathFor(r)); err != nil {
		e.end(r, err)
		return
	}
	h := header{kind: whole, to: c.context, epoch: r.Epoch, tag: r.Tag, signature: r.Signature, length: len(r.Buf)}
	lead, far := e.leads[c.process(r.Peer)].inKind(r.Tag)
	if len(r.Buf) <= e.eager(c.process(r.Peer)) && r.Mode&transport.Synchronous == 0 && !far {
		// The packet is a copy in the ring, in the backlog or in the fabric. So the buffer is free,
		// and an eager send is done, no matter when the message arrives (F1, F4).
		lead.grow(len(r.Buf))
		e.sendPacket(c.process(r.Peer), &h, r.Buf)
		e.end(r, e.err)
		return
	}
	// This send ends only when the other process has come this far, so the lead begins again: see
	// lead.
	lead.messages, lead.bytes = 0, 0
	e.offer(c.process(r.Peer), &h, c.transfer(r, r.Buf))
	// Packets keep their order, so the other process has the offer before it learns that it is
	// needed.
	c.needs(r)
}

// transfer makes the transfer of a request. It stays in moving until done or takeBack. As long as
// it is there, the engine, the fabric or the receiver may use the bytes, and an Advance waits for
// its end (see endAll). Where is how Cancel finds it.
func (c *comm) transfer(r *transport.Request, bytes []byte) *transfer {
	t := &transfer{comm: c, request: r, bytes: bytes}
	c.moving[t] = struct{}{}
	r.Where = t
	return t
}

// barred returns the error of a request that this rank must not begin, or nil. An expired process
// counts as dead at all others, which drop its messages. Its requests would be in vain.
func (c *comm) barred(r *transport.Request) error {
	err := cmp.Or(c.e.err, c.Barred(r))
	if err == nil && c.liveness.expired {
		return transport.ErrDied
	}
	return err
}

func (c *comm) Irecv(r *transport.Request)  { c.begin(r, transport.Receiving) }
func (c *comm) Probe(r *transport.Request)  { c.begin(r, transport.Probing) }
func (c *comm) Mprobe(r *transport.Request) { c.begin(r, transport.Mprobing) }

func (c *comm) Mrecv(r *transport.Request) {
	e := c.e
	e.lock()
	defer e.unlock()
	r.Kind, r.Err = transport.Receiving, nil
	if err := c.barred(r); err != nil {
		e.end(r, err)
	} else if a, err := c.Redeem(r); err != nil {
		e.end(r, err)
	} else if a != nil {
		c.give(r, a)
	} else {
		// The sender has left the epoch, and this rank will follow. Until then r waits for no
		// message: its tag is NoTag (see Redeem).
		c.Post(r)
	}
}

// TryRecv takes the message, if it has come, without a callback.
func (c *comm) TryRecv(r *transport.Request) (received bool) {
	c.e.lock()
	defer c.e.unlock()
	if c.direct(r) {
		return true
	}
	received = c.ends(r, transport.Receiving)
	// The caller handles only messages. An error is told like that of an Irecv, after mu is free.
	if received && r.Err != nil {
		c.e.end(r, r.Err)
		return false
	}
	return received
}

// direct receives the next packet of r's peer, if that is the message that r matches and nothing
// else waits on either side. It leaves messages of another signature to the queues, which compare
// calls. It saves the queues and their bookkeeping, which take longer than to copy a short message.
// It must not do anything else than take would do, so whatever needs more than a copy is left to
// ends: a posted request or a waiting message, either of which may be the older one that has to be
// matched first (F5); any source, where the next message may come from any ring; memory that has to
// be allocated; deaths; and a heart, which has to hear of each packet.
func (c *comm) direct(r *transport.Request) bool {
	e := c.e
	if r.Peer < 0 || r.Take || r.Alloc != nil || c.Posted.Len() > 0 || c.Arrived.Len() > 0 || r.Epoch != c.Live() ||
		c.HasLostAny() || c.liveness.expired || e.err != nil || e.heart != nil {
		return false
	}
	process := c.process(r.Peer)
	// All packets of a process of this machine come through its ring, in order. So the next packet
	// there is its oldest message.
	in := e.from[process]
	if in == nil || e.dead[process] {
		return false
	}
	if r.Soon != nil {
		// The program is about to wait. This goroutine holds mu meanwhile, and stops when another
		// one wants it. A look is one load of a cache line that stays in this core's cache until
		// the sender writes to it.
		for n := e.looks(glances); n > 0 && !in.Ready() && e.wanted.Load() == 0; n-- {
		}
	}
	packet, err := in.Read()
	// A ring with garbage gives the same error again in takeFrom, which reports it.
	if packet == nil || err != nil {
		return false
	}
	a := &e.arrival
	h := &a.header
	a.source = process
	// The bytes are in memory to which other processes can write. Decode copies the header, so no
	// field changes between its check here and its use below. If this is not the message, the
	// packet stays in the ring, and is taken by ends.
	if a.bytes, err = h.decode(packet); err != nil || len(a.bytes) > len(r.Buf) ||
		h.kind != whole || h.listener || h.to != c.context || h.epoch != r.Epoch || h.tag != r.Tag || h.signature != r.Signature {
		return false
	}
	r.Kind, r.Where, r.Err = transport.Receiving, nil, nil
	r.Status = transport.Status{Source: r.Peer, Tag: h.tag, Bytes: len(a.bytes), Signature: h.signature}
	copy(r.Buf, a.bytes)
	e.received(a)
	// Only now may the sender reuse the memory of the packet.
	in.Done(len(packet))
	return true
}

// begin begins a receive or a probe. The end of one that has ended at once has a callback, too.
func (c *comm) begin(r *transport.Request, kind transport.Kind) {
	c.e.lock()
	defer c.e.unlock()
	if c.ends(r, kind) {
		c.e.end(r, r.Err)
	}
}

// ends begins a receive or a probe, and says whether it has ended already. Its Done is not called.
// Beginning makes end set Ended, and nobody is told. So r remains the caller's, and may be read
// here after it has ended. Otherwise a Light request might be in use again by then.
func (c *comm) ends(r *transport.Request, kind transport.Kind) bool {
	r.Kind, r.Where, r.Err, r.Beginning, r.Ended = kind, nil, nil, true, false
	// r is posted before the look into the ring. So a message that is in the ring goes from there
	// to r's buffer. A message that is taken first would be copied to the queue, and from there
	// again.
	c.matchOrPost(r)
	c.lookFor(r)
	r.Beginning = false
	return r.Ended
}

// lookFor takes packets from the process that a request waits for, if it is of this machine, until
// the message has come or no packet is left. It takes at most polls of them. There is a limit
// because mu is held, and the process may send without end.
func (c *comm) lookFor(r *transport.Request) {
	if r.Peer < 0 || !c.Waits(r) {
		return
	}
	in := c.e.from[c.process(r.Peer)]
	// The packet may be of any communicator, may end other requests, and may make the engine fail,
	// which ends r.
	for n := 0; in != nil && n < polls && c.Waits(r) && c.e.lookAt(in); n++ {
	}
}

// Start begins the requests of a step of an algorithm. It returns how many of them have ended at
// once; these have no callbacks.
func (c *comm) Start(rs []transport.Request) (ended int) {
	c.e.lock()
	defer c.e.unlock()
	// They begin in the caller's order: sends to one rank must not overtake each other (F5).
	for i := range rs {
		r := &rs[i]
		r.Beginning, r.Ended = true, false
		if r.Kind == transport.Sending {
			c.send(r)
			continue
		}
		r.Where, r.Err = nil, nil
		c.matchOrPost(r)
	}
	// All receives are posted by now. The messages of a step come in any order, and each goes from
	// the ring to its buffer.
	for i := range rs {
		for n := c.e.looks(atStart); n > 0 && c.Waits(&rs[i]); n-- {
			c.lookFor(&rs[i])
		}
	}
	// From here on end tells of these requests. The caller owns the requests that are Ended. The
	// others may end as soon as mu is free, and must not be read after that.
	for i := range rs {
		r := &rs[i]
		if r.Beginning = false; r.Ended {
			ended++
		}
	}
	return ended
}

// matchOrPost gives r a message that has come, or posts r for a later message. A message that has
// come is received even if its sender has died since, so Match comes before DeathFor. All is done
// with mu held. So a death that is noted later finds r in the queue.
func (c *comm) matchOrPost(r *transport.Request) {
	if err := c.barred(r); err != nil {
		c.e.end(r, err)
	} else if a := c.Match(r); a != nil && r.Kind == transport.Receiving {
		c.give(r, a)
	} else if a != nil {
		c.e.end(r, nil)
	} else if err := c.DeathFor(r); err != nil {
		c.e.end(r, err)
	} else {
		c.Post(r)
		// The peer may have left. It learns of this only by being told that it is needed.
		c.needs(r)
	}
}

// Cancel cancels a waiting receive or probe, or an offer that has not been accepted.
func (c *comm) Cancel(r *transport.Request) bool {
	c.e.lock()
	defer c.e.unlock()
	// Where says in which state r is. It changes only with mu held.
	t, moves := r.Where.(*transfer)
	if moves && c.takeBack(t) {
		// The receiver may have accepted the offer already, and wait for its bytes. Then it gets
		// other bytes, and this packet tells an Mrecv why (see done).
		h := header{kind: withdrawn, to: c.context, id: t.id}
		if c.process(r.Peer) == c.e.rank {
			c.e.forget(c.e.rank, h) // the offer is to this process itself
		}
		c.e.sendPacket(c.process(r.Peer), &h, nil)
		c.e.end(r, transport.ErrCancelled)
		return true
	}
	if c.Withdraw(r) {
		c.e.end(r, transport.ErrCancelled)
		return true
	}
	// The bytes are under way. At a receiver they may turn out to be those of an offer that was
	// taken back. The receive then ends as cancelled, though Cancel has returned false.
	if moves {
		t.cancelled = true
	}
	return false
}

// takeBack takes back an offer that has been neither accepted nor claimed. It returns false for a
// transfer at the receiver, which is in offers under no id. If it returns true the buffer is free
// (F4), and the caller ends the request.
func (c *comm) takeBack(t *transfer) bool {
	if c.e.offers[t.id] != t || !c.e.withdraw(t) {
		return false
	}
	delete(c.moving, t)
	return true
}
