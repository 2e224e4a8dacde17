package node

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// transfer moves the bytes of a message that are sent separately from its header. The engine's mu
// protects it.
type transfer struct {
	comm      *comm
	peer      int                // process
	request   *transport.Request // nil: the message is a listener's
	arrival   *arrival           // the message that it is part of
	bytes     []byte
	parts     int // number of the fabric's messages that have not ended
	lengths   int // sum of the lengths of those that have come
	dead      bool
	cancelled bool   // by its sender
	tag       uint32 // that this process has given to it; 0: none of the fabric's
	place     int    // of the offer, if its receiver may read the bytes from its sender's memory; else 0
	pin       runtime.Pinner
}

// offer offers a process a message. t has the bytes.
func (e *engine) offer(to int, h *header, t *transfer) {
	t.peer = to
	e.offered = max(e.offered, h.length)
	e.lastID++
	h.kind, h.id = offer, e.lastID
	e.offers[h.id] = t
	var where []byte
	if o := e.out[to]; o != nil && e.pullable(len(t.bytes)) {
		if t.place = o.offers.Open(h.id); t.place > 0 {
			where = e.origin(t)
		}
	}
	e.sendPacket(to, h, where)
}

// withdraw takes back an offer. It returns false if the receiver has claimed it.
func (e *engine) withdraw(id uint64, t *transfer) bool {
	if o := e.out[t.peer]; o != nil && t.place > 0 && !o.offers.Withdraw(t.place, id) {
		return false
	}
	e.closeOffer(id, t)
	return true
}

// closeOffer forgets an offer.
func (e *engine) closeOffer(id uint64, t *transfer) {
	delete(e.offers, id)
	if o := e.out[t.peer]; o != nil && t.place > 0 {
		o.offers.Close(t.place)
	}
}

// accepted sends the bytes that were offered, unless the receiver has read them. If the offer is over, it sends one
// byte less or more, which says so: the receive is posted, and has to end.
func (e *engine) accepted(source int, h header) error {
	t := e.offers[h.id]
	if t != nil && (t.peer != source || h.transferTag != 0 && h.length != len(t.bytes)) {
		return fmt.Errorf("%d bytes accepted of offer %d, expected %d by process %d", h.length, h.id, len(t.bytes), t.peer)
	}
	if h.length > e.offered {
		return fmt.Errorf("%d bytes accepted of offer %d, where none was longer than %d", h.length, h.id, e.offered)
	}
	if h.kind == pulled && (t == nil || t.place == 0) {
		return fmt.Errorf("bytes read of offer %d, which does not say where they are", h.id)
	}
	if t != nil {
		e.closeOffer(h.id, t)
	}
	switch {
	case t == nil && h.transferTag != 0:
		e.give(source, h.transferTag, new(transfer), make([]byte, withdrawnLength(h.length)), h.length)
	case t == nil:
	case h.transferTag == 0, h.kind == pulled:
		e.done(t)
	default:
		e.give(source, h.transferTag, t, t.bytes, h.length)
	}
	return nil
}

// give sends the bytes of a transfer, or others in their place, to the process that has accepted it.
func (e *engine) give(to int, tag uint32, t *transfer, bytes []byte, length int) {
	if o := e.out[to]; o != nil {
		t.peer = to
		o.remainders = append(o.remainders, remainder{t, tag, bytes, len(bytes)})
		e.lagging++
		e.push(o)
	} else {
		e.carry(true, to, tag, t, bytes, length)
	}
}

// withdrawnLength returns the number of bytes that are sent instead of length bytes whose offer is over. It
// differs from length, so the receiver notices.
func withdrawnLength(length int) int {
	if length == 0 {
		return 1
	}
	return 0
}

// accept accepts an offer, and is ready for its bytes.
func (e *engine) accept(a *arrival, t *transfer) {
	e.tags++
	tag := max(e.tags, 1)
	t.arrival = a
	if o := e.out[a.source]; o != nil {
		t.peer = a.source
		e.coming[tag] = t
		if e.pullFrom(o, tag, t) {
			return
		}
	} else {
		tag = e.freeTag()
		t.tag = tag
		room := t.bytes
		if len(room) == 0 {
			room = make([]byte, withdrawnLength(0))
		}
		e.carry(false, a.source, tag, t, room, a.header.length)
	}
	e.answer(accept, tag, t)
}

// freeTag returns a tag for the bytes of a transfer. It passes over those in use: the fabric may divide transfers into
// parts that begin one after another, and takes the parts of two with one tag for each other's.
func (e *engine) freeTag() uint32 {
	tag := 1 + e.tags%transferTags
	for e.tagged[tag] && len(e.tagged) < transferTags {
		e.tags++
		tag = 1 + e.tags%transferTags
	}
	e.tagged[tag] = true
	return tag
}

// forget drops an offer that its sender has taken back. If it has been accepted already, other bytes come
// in the place of its own.
func (e *engine) forget(source int, h header) {
	of := func(a *arrival) bool { return a.source == source && a.header.kind == offer && a.header.id == h.id }
	if c := e.comms[h.to]; c != nil {
		c.DropIf(func(n *match.Node[arrival]) bool {
			n.Cancelled = of(n.Of)
			return n.Cancelled
		})
		e.eachComing(func(t *transfer) { t.cancelled = t.cancelled || of(t.arrival) })
	} else if early := slices.DeleteFunc(e.early[h.to], of); len(early) > 0 {
		e.early[h.to] = early
	} else {
		delete(e.early, h.to)
	}
}

// eachComing calls visit for the transfers that this process has accepted.
func (e *engine) eachComing(visit func(*transfer)) {
	for _, t := range e.coming {
		visit(t)
	}
	for _, t := range e.transfers {
		if t.arrival != nil {
			visit(t)
		}
	}
}

// refuse ends an offer for its sender as if the bytes had been received.
func (e *engine) refuse(a *arrival) {
	if a.header.kind == offer {
		e.sendPacket(a.source, &header{kind: accept, to: a.header.to, id: a.header.id}, nil)
	}
}

// Longest is the number of bytes that a fabric is given at a time; MPI counts them in an int. Tests make it
// small, at all processes alike.
var Longest = 1 << 30

// carry makes the fabric send or receive the bytes of a transfer, or others in their place, in parts.
func (e *engine) carry(send bool, peer int, tag uint32, t *transfer, bytes []byte, length int) {
	longest := Longest
	if e.whole {
		longest = math.MaxInt
	}
	t.peer = peer
	t.parts = max(1, (length-1)/longest+1)
	if len(bytes) > 0 {
		t.pin.Pin(&bytes[0])
	}
	for range t.parts {
		part := bytes[:min(len(bytes), longest)]
		bytes = bytes[len(part):]
		e.lastID++
		e.transfers[e.lastID] = t
		dead, err := e.fabric.Transfer(send, peer, tag, part, e.lastID)
		if err != nil {
			e.fail(err)
			return
		}
		if dead {
			e.stillborn = append(e.stillborn, e.lastID)
		}
	}
}

// ended notes that a part of a transfer has been sent, or received with length bytes.
func (e *engine) ended(id uint64, length int, dead bool) {
	t := e.transfers[id]
	delete(e.transfers, id)
	if t.parts < 0 {
		return // the fabric has failed
	}
	t.lengths += length
	t.dead = t.dead || dead
	if t.parts--; t.parts == 0 {
		t.pin.Unpin()
		delete(e.tagged, t.tag)
		e.done(t)
	}
}

// done ends the request or arrival of a transfer.
func (e *engine) done(t *transfer) {
	c, a := t.comm, t.arrival
	switch {
	case t.parts < 0: // the fabric has failed meanwhile
	case c == nil: // in place of one that was withdrawn
	case t.dead && t.request == nil: // a listener's
		if a != nil {
			c.inbox = slices.DeleteFunc(c.inbox, func(i *arrival) bool { return i == a })
			c.handOn()
		}
	case t.dead:
		delete(c.sending, t.request)
		delete(c.receiving, t.request)
		e.end(t.request, &transport.DeadError{Rank: c.rankIn(t.peer)})
	case a == nil && t.request == nil: // a listener's has left
	case a == nil:
		delete(c.sending, t.request)
		e.end(t.request, nil)
	case a.header.listener:
		a.bytes, a.header.kind = t.bytes, whole
		c.handOn()
	case t.lengths != a.header.length: // its sender is in another epoch, or has cancelled it
		cancelled := c.receiving[t.request] || t.cancelled && t.request.Tag == transport.NoTag
		delete(c.receiving, t.request)
		if cancelled {
			e.end(t.request, transport.ErrCancelled)
		} else {
			c.matchOrPost(t.request)
		}
	default:
		delete(c.receiving, t.request)
		e.end(t.request, nil)
	}
}
