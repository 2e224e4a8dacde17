package mpi

import (
	"runtime"
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// body is a message's bytes that are to go, or to come, apart from its head.
type body struct {
	side    *side
	peer    int                // process
	request *transport.Request // nil: it is a listener's
	arrival *arrival           // that it is part of
	bytes   []byte
	parts   int // messages of MPI that have not ended
	lengths int // of those that have come
	lost    bool
	pin     runtime.Pinner
}

// offer tells a process of a message, for which b has the bytes.
func (e *engine) offer(to int, h *head, b *body) {
	b.peer = to
	e.lastID++
	h.kind, h.id = offer, e.lastID
	e.offers[h.id] = b
	e.packet(to, h, nil)
}

// accepted sends the bytes that were offered. If the offer is over, a single byte
// less or more says so: the receive is posted, and has to end.
func (e *engine) accepted(source int, h head) {
	b := e.offers[h.id]
	delete(e.offers, h.id)
	switch {
	case b == nil && h.body != 0:
		e.give(source, h.body, new(body), make([]byte, instead(h.length)), h.length)
	case b == nil:
	case h.body == 0:
		e.done(b)
	default:
		e.give(source, h.body, b, b.bytes, h.length)
	}
}

// give sends the bytes of a body, or others in their place, to whoever has accepted it.
func (e *engine) give(to int, tag uint32, b *body, bytes []byte, length int) {
	if o := e.out[to]; o != nil {
		b.peer = to
		o.streams = append(o.streams, stream{b, tag, bytes, len(bytes)})
		e.lagging++
		e.push(o)
	} else {
		e.carry(true, to, tag, b, bytes, length)
	}
}

// instead is the length of what comes in place of so many bytes when their offer is
// over.
func instead(length int) int {
	if length == 0 {
		return 1
	}
	return 0
}

// take accepts an offer, and is ready for its bytes.
func (e *engine) take(a *arrival, b *body) {
	e.tags++
	tag := max(e.tags, 1)
	b.arrival = a
	if e.out[a.source] != nil {
		b.peer = a.source
		e.coming[tag] = b
	} else {
		tag = 1 + e.tags%bodyTags
		room := b.bytes
		if len(room) == 0 {
			room = make([]byte, instead(0))
		}
		e.carry(false, a.source, tag, b, room, a.head.length)
	}
	e.packet(a.source, &head{kind: accept, to: a.head.to, id: a.head.id, body: tag, length: a.head.length}, nil)
}

// forget drops an offer that its sender has taken back. If it has been accepted, other
// bytes come in the place of its own.
func (e *engine) forget(source int, h head) {
	of := func(a *arrival) bool { return a.source == source && a.head.kind == offer && a.head.id == h.id }
	if s := e.sides[h.to]; s != nil {
		s.DropIf(func(n *match.Node[arrival]) bool { return of(n.Of) })
	} else if early := slices.DeleteFunc(e.early[h.to], of); len(early) > 0 {
		e.early[h.to] = early
	} else {
		delete(e.early, h.to)
	}
}

// refuse ends an offer for its sender as if the bytes had come.
func (e *engine) refuse(a *arrival) {
	if a.head.kind == offer {
		e.packet(a.source, &head{kind: accept, to: a.head.to, id: a.head.id}, nil)
	}
}

// longest is how many bytes MPI is given at a time: it counts them in int. Tests make
// it small, at all processes alike.
var longest = 1 << 30

// carry has MPI send, or receive, the bytes of a body, or others in their place, in as
// many parts.
func (e *engine) carry(send bool, peer int, tag uint32, b *body, bytes []byte, length int) {
	b.peer = peer
	b.parts = max(1, (length+longest-1)/longest)
	if len(bytes) > 0 {
		b.pin.Pin(&bytes[0])
	}
	for range b.parts {
		part := bytes[:min(len(bytes), longest)]
		bytes = bytes[len(part):]
		e.lastID++
		e.bodies[e.lastID] = b
		lost, err := e.mpi.begin(send, peer, tag, part, e.lastID)
		if err != nil {
			e.fail(err)
			return
		}
		if lost {
			e.stillborn = append(e.stillborn, e.lastID)
		}
	}
}

// ended takes note that a part of a body has left, or come with so many bytes.
func (e *engine) ended(id uint64, length int, lost bool) {
	b := e.bodies[id]
	delete(e.bodies, id)
	if b.parts < 0 {
		return // MPI has failed meanwhile
	}
	b.lengths += length
	b.lost = b.lost || lost
	if b.parts--; b.parts == 0 {
		b.pin.Unpin()
		e.done(b)
	}
}

// done ends what a body was for.
func (e *engine) done(b *body) {
	s, a := b.side, b.arrival
	switch {
	case b.parts < 0: // MPI has failed meanwhile
	case s == nil: // in place of one that was withdrawn
	case b.lost && b.request == nil: // a listener's
		if a != nil {
			s.inbox = slices.DeleteFunc(s.inbox, func(i *arrival) bool { return i == a })
			s.handOn()
		}
	case b.lost:
		delete(s.sending, b.request)
		delete(s.receiving, b.request)
		e.end(b.request, &transport.DeadError{Rank: s.rankIn(b.peer)})
	case a == nil && b.request == nil: // a listener's has left
	case a == nil:
		delete(s.sending, b.request)
		e.end(b.request, nil)
	case a.head.listener:
		a.bytes, a.head.kind = b.bytes, whole
		s.handOn()
	case b.lengths != a.head.length: // its sender is in another epoch, or has cancelled it
		cancelled := s.receiving[b.request]
		delete(s.receiving, b.request)
		if cancelled {
			e.end(b.request, transport.ErrCancelled)
		} else {
			s.matchOrPost(b.request)
		}
	default:
		delete(s.receiving, b.request)
		e.end(b.request, nil)
	}
}
