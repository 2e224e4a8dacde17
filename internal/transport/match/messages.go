package match

import (
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Messages are the messages that have come and wait for receives, in the order in which they came.
type Messages[T any] struct {
	queue[Node[T], *Node[T]]
	collective int // of these, messages of collective calls
}

// A Node is a message's place in the queue, and its envelope. It is part of the message, whose
// address is Of.
type Node[T any] struct {
	Envelope
	transport.Links[Node[T]] // Number is 0: it is in no queue

	Of *T
	// Send is the send that waits until the message is received, or nil. When it ends, it removes
	// the message from the queue and does nothing else, because the sender may be in another epoch.
	Send *transport.Request
	// Cancelled says that the sender has taken the message back. An Mprobe may have the message
	// still, and its Mrecv ends with this (Redeem).
	Cancelled bool
	probed    bool // it is in Matcher.Probed
}

// OfCalls returns how many of the messages belong to collective calls.
func (q *Messages[T]) OfCalls() int { return q.collective }

// Push appends a message.
func (q *Messages[T]) Push(n *Node[T]) {
	q.push(n.Key, n, &n.Links)
	q.count(n, 1)
}

// Remove removes a message, which is in the queue. After that the Node may be pushed again, here or
// to another queue: Match removes a message from Arrived before Keep pushes it to Probed.
func (q *Messages[T]) Remove(n *Node[T]) {
	q.remove(n.Key, &n.Links)
	q.count(n, -1)
}

// count keeps collective, by which a transport limits what it keeps, and Call knows at once that
// there is nothing to compare.
func (q *Messages[T]) count(n *Node[T], d int) {
	if transport.IsCollective(n.Tag) {
		q.collective += d
	}
}

// Find returns the oldest message that r matches, or nil. If r has a wildcard it may look at all
// messages. Messages of other epochs are in the queue too. They never match, because the epoch is
// part of the key (P3).
func (q *Messages[T]) Find(r *transport.Request) *Node[T] {
	// A wildcard has no key, so such a search does not profit from an index.
	directed, looked := r.Peer != transport.AnySource && r.Tag != transport.AnyTag, 0
	for n := q.first; n != nil; n = n.Next {
		if directed && (q.index != nil || looked == few) {
			return q.indexed(func(n *Node[T]) Key { return n.Key }).first(keyOf(r)).of
		}
		looked++
		if takes(r, &n.Key) {
			return n
		}
	}
	return nil
}
