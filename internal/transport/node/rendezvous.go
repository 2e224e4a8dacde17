package node

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// transfer moves the bytes of a message that are sent separately from its header. The engine's mu
// protects it.
type transfer struct {
	comm      *comm              // nil: its bytes come in place of some whose offer is over
	id        uint64             // of the offer
	peer      int                // process
	request   *transport.Request // nil: the message is a listener's
	arrival   *arrival           // the message that it is part of; nil: this process sends it
	bytes     []byte
	length    int    // of what has come
	dead      bool   // the peer is
	over      bool   // it has been told
	withdrawn bool   // by its sender
	cancelled bool   // by its receiver, if no bytes come
	tag       uint32 // that this process has given to it; 0: none of the fabric's
	place     int    // of the offer, if its receiver may read the bytes from its sender's memory; else 0
	pin       runtime.Pinner
}

// rendezvous are the transfers of a process.
type rendezvous struct {
	lastID    uint64               // of an offer, or of a transfer that the fabric has
	offers    map[uint64]*transfer // of this process, not accepted so far
	offered   int                  // bytes of the longest of them so far
	transfers map[uint64]*transfer // that the fabric has
	tags      uint32               // given to transfers to this process
	tagged    map[uint32]bool      // those of the fabric's tags that they have
	coming    map[uint32]*transfer // that come through a pipe, by tag
	pulls     []pull               // of coming, those that are being read
	cookie    *cookie
}

func newRendezvous() rendezvous {
	return rendezvous{offers: make(map[uint64]*transfer), transfers: make(map[uint64]*transfer),
		tagged: make(map[uint32]bool), coming: make(map[uint32]*transfer), cookie: newCookie()}
}

// offer offers a process a message. t has the bytes.
func (e *engine) offer(to int, h *header, t *transfer) {
	t.peer = to
	e.offered = max(e.offered, h.length)
	e.lastID++
	t.id = e.lastID
	h.kind, h.id = offer, t.id
	e.offers[t.id] = t
	var where []byte
	if o := e.out[to]; o != nil && e.pullable(len(t.bytes)) {
		if t.place = o.offers.Open(t.id); t.place > 0 {
			where = e.origin(t)
		}
	}
	e.sendPacket(to, h, where)
}

// withdraw takes back an offer. It returns false if the receiver has claimed it.
func (e *engine) withdraw(t *transfer) bool {
	if o := e.out[t.peer]; o != nil && t.place > 0 && !o.offers.Withdraw(t.place, t.id) {
		return false
	}
	e.closeOffer(t)
	return true
}

// closeOffer forgets an offer.
func (e *engine) closeOffer(t *transfer) {
	delete(e.offers, t.id)
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
		e.closeOffer(t)
	}
	switch {
	case t == nil && h.transferTag != 0:
		e.give(h.transferTag, &transfer{peer: source, bytes: make([]byte, withdrawnLength(h.length))})
	case t == nil:
	case h.transferTag == 0, h.kind == pulled:
		e.done(t)
	default:
		e.give(h.transferTag, t)
	}
	return nil
}

// give sends the bytes of a transfer to the process that has accepted it.
func (e *engine) give(tag uint32, t *transfer) {
	if o := e.out[t.peer]; o != nil {
		o.remainders = append(o.remainders, remainder{t, tag, t.bytes, len(t.bytes)})
		e.lagging++
		e.push(o)
	} else {
		e.carry(true, tag, t, t.bytes)
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
	t.arrival, t.peer = a, a.source
	if o := e.out[a.source]; o != nil {
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
		e.carry(false, tag, t, room)
	}
	e.answer(accept, tag, t)
}

// transferTags is the number of a fabric's tags for transfers. Two transfers between the same
// processes never use one tag at the same time. (MPI promises 32767.)
const transferTags = 32000

// freeTag returns a tag for the bytes of a transfer. It passes over those in use: the fabric divides transfers into
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
		e.eachComing(func(t *transfer) { t.withdrawn = t.withdrawn || of(t.arrival) })
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

// carry makes the fabric send or receive the bytes of a transfer, or receive others in their place.
func (e *engine) carry(send bool, tag uint32, t *transfer, bytes []byte) {
	if len(bytes) > 0 {
		t.pin.Pin(&bytes[0])
	}
	e.lastID++
	id := e.lastID
	e.transfers[id] = t
	dead, err := e.fabric.Transfer(send, t.peer, tag, bytes, id)
	if err != nil {
		e.fail(err)
	} else if dead {
		e.ended(id, 0, true)
	}
}

// ended notes that the bytes of a transfer have been sent, or received with length bytes.
func (e *engine) ended(id uint64, length int, dead bool) {
	t := e.transfers[id]
	delete(e.transfers, id)
	if t.over {
		return // the fabric has failed
	}
	t.length, t.dead = length, t.dead || dead
	t.pin.Unpin()
	delete(e.tagged, t.tag)
	e.done(t)
}

// done ends the request or arrival of a transfer.
func (e *engine) done(t *transfer) {
	c, a, r := t.comm, t.arrival, t.request
	if t.over || c == nil { // the fabric has failed meanwhile; or it was in place of one that was withdrawn
		return
	}
	t.over = true
	if r == nil { // a listener's
		if a != nil && t.dead {
			c.inbox = slices.DeleteFunc(c.inbox, func(i *arrival) bool { return i == a })
		} else if a != nil {
			a.bytes, a.header.kind = t.bytes, whole
		}
		c.handOn()
		return
	}
	delete(c.moving, t)
	switch {
	case t.dead:
		e.end(r, &transport.DeadError{Rank: c.rankIn(t.peer)})
	case a == nil || t.length == a.header.length:
		e.end(r, nil)
	case t.cancelled || t.withdrawn && r.Tag == transport.NoTag: // its sender is in another epoch, or has cancelled it
		e.end(r, transport.ErrCancelled)
	default:
		r.Where = nil
		c.matchOrPost(r)
	}
}
