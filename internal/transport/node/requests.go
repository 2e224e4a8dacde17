package node

import (
	"cmp"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// TrySend sends a message if it can be eager and nothing bars it. It returns false if it has not
// sent it.
func (c *comm) TrySend(dest, tag int, epoch transport.Epoch, w signature.Word, buf []byte) bool {
	e := c.e
	if len(buf) > max(nearLimit, e.far) {
		return false
	}
	e.lock()
	process := c.process(dest)
	lead, far := e.leads[process].inKind(tag)
	ok := epoch == c.Live() && e.err == nil && !c.HasLostAny() && !c.liveness.expired && len(buf) <= e.eager(process) && !far
	if ok {
		lead.grow(len(buf))
		e.sendPacket(process, &header{kind: whole, to: c.context, epoch: epoch, tag: tag, signature: w, length: len(buf)}, buf)
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

func (c *comm) send(r *transport.Request) {
	e := c.e
	e.lookForCredit(c.process(r.Peer), r.Tag)
	r.Kind, r.Where, r.Err = transport.Sending, nil, nil
	r.Status = transport.Status{Source: c.rank, Tag: r.Tag, Bytes: len(r.Buf), Signature: r.Signature}
	err := c.barred(r)
	if err == nil {
		err = c.DeathFor(r)
	}
	if err != nil {
		e.end(r, err)
		return
	}
	h := header{kind: whole, to: c.context, epoch: r.Epoch, tag: r.Tag, signature: r.Signature, length: len(r.Buf)}
	lead, far := e.leads[c.process(r.Peer)].inKind(r.Tag)
	if len(r.Buf) <= e.eager(c.process(r.Peer)) && r.Mode&transport.Synchronous == 0 && !far {
		lead.grow(len(r.Buf))
		e.sendPacket(c.process(r.Peer), &h, r.Buf)
		e.end(r, e.err)
		return
	}
	lead.messages, lead.bytes = 0, 0
	e.offer(c.process(r.Peer), &h, c.transfer(r, r.Buf))
	c.needs(r)
}

// transfer makes the transfer of a request.
func (c *comm) transfer(r *transport.Request, bytes []byte) *transfer {
	t := &transfer{comm: c, request: r, bytes: bytes}
	c.moving[t] = struct{}{}
	r.Where = t
	return t
}

// barred returns the error of a request that this rank must not begin, or nil.
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
		c.Post(r)
	}
}

// TryRecv takes the message, if it has come, without news.
func (c *comm) TryRecv(r *transport.Request) (received bool) {
	c.e.lock()
	defer c.e.unlock()
	if c.direct(r) {
		return true
	}
	received = c.ends(r, transport.Receiving)
	if received && r.Err != nil {
		c.e.end(r, r.Err)
		return false
	}
	return received
}

// direct receives the next packet of r's peer, if that is the message that r matches and nothing
// else waits on either side. It leaves messages of another signature to the queues, which compare
// calls.
func (c *comm) direct(r *transport.Request) bool {
	e := c.e
	if r.Peer < 0 || r.Take || r.Alloc != nil || c.Posted.Len() > 0 || c.Arrived.Len() > 0 || r.Epoch != c.Live() ||
		c.HasLostAny() || c.liveness.expired || e.err != nil || e.heart != nil {
		return false
	}
	process := c.process(r.Peer)
	in := e.from[process]
	if in == nil || e.dead[process] {
		return false
	}
	if r.Soon != nil {
		for n := e.looks(glances); n > 0 && !in.Ready() && e.wanted.Load() == 0; n-- {
		}
	}
	packet, err := in.Read()
	if packet == nil || err != nil {
		return false
	}
	a := &e.arrival
	h := &a.header
	a.source = process
	if a.bytes, err = h.decode(packet); err != nil || len(a.bytes) > len(r.Buf) ||
		h.kind != whole || h.listener || h.to != c.context || h.epoch != r.Epoch || h.tag != r.Tag || h.signature != r.Signature {
		return false
	}
	r.Kind, r.Where, r.Err = transport.Receiving, nil, nil
	r.Status = transport.Status{Source: r.Peer, Tag: h.tag, Bytes: len(a.bytes), Signature: h.signature}
	copy(r.Buf, a.bytes)
	e.received(a)
	in.Done(len(packet))
	return true
}

func (c *comm) begin(r *transport.Request, kind transport.Kind) {
	c.e.lock()
	defer c.e.unlock()
	if c.ends(r, kind) {
		c.e.end(r, r.Err)
	}
}

// ends begins a receive or a probe, and says whether it has ended already. Its Done is not called.
func (c *comm) ends(r *transport.Request, kind transport.Kind) bool {
	r.Kind, r.Where, r.Err, r.Beginning, r.Ended = kind, nil, nil, true, false
	c.matchOrPost(r)
	c.lookFor(r)
	r.Beginning = false
	return r.Ended
}

// lookFor takes packets from the process that a request waits for, if it is of this machine, until
// the message has come or no packet is left. It takes at most polls of them.
func (c *comm) lookFor(r *transport.Request) {
	if r.Peer < 0 || !c.Waits(r) {
		return
	}
	in := c.e.from[c.process(r.Peer)]
	for n := 0; in != nil && n < polls && c.Waits(r) && c.e.lookAt(in); n++ {
	}
}

// Start begins the requests of a step of an algorithm. It returns how many of them have ended at
// once; these are not in the news.
func (c *comm) Start(rs []transport.Request) (ended int) {
	c.e.lock()
	defer c.e.unlock()
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
	for i := range rs {
		for n := c.e.looks(atStart); n > 0 && c.Waits(&rs[i]); n-- {
			c.lookFor(&rs[i])
		}
	}
	for i := range rs {
		r := &rs[i]
		if r.Beginning = false; r.Ended {
			ended++
		}
	}
	return ended
}

// matchOrPost gives r a message that has come, or posts r for a later message.
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
		c.needs(r)
	}
}

// Cancel cancels a waiting receive or probe, or an offer that has not been accepted.
func (c *comm) Cancel(r *transport.Request) bool {
	c.e.lock()
	defer c.e.unlock()
	t, moves := r.Where.(*transfer)
	if moves && c.takeBack(t) {
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
	if moves {
		t.cancelled = true
	}
	return false
}

// takeBack takes back an offer that has been neither accepted nor claimed.
func (c *comm) takeBack(t *transfer) bool {
	if c.e.offers[t.id] != t || !c.e.withdraw(t) {
		return false
	}
	delete(c.moving, t)
	return true
}
