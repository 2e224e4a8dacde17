package node

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A transfer moves the bytes of one message separately from its header: see package node. Each side
// has a transfer of its own. At the sender it begins with the offer, at the receiver when the
// receiver accepts the offer. The engine's mu protects it.
type transfer struct {
	// comm is nil if the offer was taken back and this process, its sender, sends other bytes in
	// their place: see accepted.
	comm *comm
	id   uint64 // of the offer, at its sender
	peer int    // the other process
	// request is the send or receive whose bytes these are. It is nil if the message is for a
	// listener.
	request *transport.Request
	// arrival is the offer that the receiver has accepted. It is nil at the sender.
	arrival *arrival
	// bytes are the sender's bytes, or the receiver's room for them.
	bytes  []byte
	length int  // bytes received so far
	dead   bool // the peer has died, so the transfer ends with an error
	// over says that the transfer has ended, and that its request or listener has been told. It
	// ends at most once.
	over bool
	// withdrawn says that the sender took the offer back after the receiver had accepted it.
	withdrawn bool
	// cancelled says that the program has cancelled the receive after its offer was accepted. This
	// has an effect only if the sender has taken the offer back.
	cancelled bool
	tag       uint32 // the fabric's tag that the receiver has reserved for it; 0: none
	// place is the offer's place in the table of offers, at its sender, if the receiver may read
	// the bytes from the sender's memory (see pull); else 0.
	place int
	pin   runtime.Pinner // pins bytes while the fabric uses them
}

// rendezvous is the state of a process's transfers. It is part of the engine, whose mu protects it.
// A transfer at the sender is in offers until the offer is accepted or taken back. Then it is in
// transfers until the fabric has sent the bytes, or in the remainders of an outbox until the ring
// has them. A transfer at the receiver is in transfers or in coming, until all bytes have come.
type rendezvous struct {
	lastID    uint64               // the last id given to an offer or to a transfer of the fabric
	offers    map[uint64]*transfer // by id: this process's offers that are not accepted yet
	offered   int                  // the length of the longest offer that this process ever made
	transfers map[uint64]*transfer // by id: those that the fabric sends or receives
	tags      uint32               // counts the transfers to this process, for their tags
	tagged    map[uint32]bool      // the fabric's tags in use, for transfers to this process
	coming    map[uint32]*transfer // by tag: those to this process from a process of its machine
	// pulls are the transfers of coming whose bytes this process reads from the sender's memory.
	// It reads the first of them until that is complete.
	pulls  []pull
	cookie *cookie // shows receivers that they read this process's memory
}

// offer offers a process the message with header h and the bytes of t.
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

// withdraw takes back an offer that has not been accepted. It returns false if the receiver has
// claimed it: then the receiver is reading the bytes.
func (e *engine) withdraw(t *transfer) bool {
	if o := e.out[t.peer]; o != nil && t.place > 0 && !o.offers.Withdraw(t.place, t.id) {
		return false
	}
	e.closeOffer(t)
	return true
}

// closeOffer forgets an offer that was accepted or taken back.
func (e *engine) closeOffer(t *transfer) {
	delete(e.offers, t.id)
	if o := e.out[t.peer]; o != nil && t.place > 0 {
		o.offers.Close(t.place)
	}
}

// accepted handles the answer to an offer. It sends the bytes, unless the receiver has read them
// already or does not want them. If the offer was taken back meanwhile, the receiver still waits
// for bytes. Then accepted sends a different number of bytes, which tells the receiver so: see
// withdrawnLength. It returns an error if no process sends such a packet.
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
		e.ring()
	} else {
		e.carry(true, tag, t, t.bytes)
	}
}

// withdrawnLength returns the number of bytes that are sent in place of length bytes whose offer
// was taken back. It differs from length, so the receiver notices.
func withdrawnLength(length int) int {
	if length == 0 {
		return 1
	}
	return 0
}

// accept accepts the offer a, and prepares t to receive its bytes.
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

// freeTag returns a tag for the bytes of a transfer, and marks it as in use. It skips tags in use:
// the fabric divides transfers into parts, and could not distinguish the parts of two transfers
// with the same tag.
func (e *engine) freeTag() uint32 {
	tag := 1 + e.tags%transferTags
	for e.tagged[tag] && len(e.tagged) < transferTags {
		e.tags++
		tag = 1 + e.tags%transferTags
	}
	e.tagged[tag] = true
	return tag
}

// forget drops an offer that its sender has cancelled. If this process has accepted it already, the
// sender will send other bytes in place of its own: see accepted.
func (e *engine) forget(source int, h header) {
	of := func(a *arrival) bool { return a.source == source && a.header.kind == offer && a.header.id == h.id }
	if c := e.comms[h.to]; c != nil {
		c.DropIf(func(n *match.Node[arrival]) bool {
			n.Cancelled = of(n.Of)
			return n.Cancelled
		})
		for t := range c.moving {
			t.withdrawn = t.withdrawn || t.arrival != nil && of(t.arrival)
		}
	} else if early := slices.DeleteFunc(e.early[h.to], of); len(early) > 0 {
		e.early[h.to] = early
	} else {
		delete(e.early, h.to)
	}
}

// refuse accepts an offer without its bytes. For the sender, the send ends as if they had been
// received.
func (e *engine) refuse(a *arrival) {
	if a.header.kind == offer {
		e.sendPacket(a.source, &header{kind: accept, to: a.header.to, id: a.header.id}, nil)
	}
}

// carry makes the fabric send or receive bytes for a transfer. They are those of t, except that a
// receiver of no bytes has room for those of withdrawnLength. They are pinned until ended is
// called.
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

// ended notes that the fabric has sent the bytes of a transfer, or has received length bytes, or
// that the peer has died.
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

// done ends a transfer, and its request. A message for a listener is handed on. If the sender had
// taken the offer back, the receive is cancelled or waits for another message.
func (e *engine) done(t *transfer) {
	c, a, r := t.comm, t.arrival, t.request
	if t.over || c == nil { // the fabric has failed; or the bytes were in place of a withdrawn offer's
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
