package match

import (
	"iter"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Messages are the messages that have come and wait for receives, in the order in which they came.
type Messages[T any] struct {
	// The queue is linked through the Nodes, so to keep a message needs no memory of its own, and a
	// message anywhere in the queue is removed without a search.
	first, last *Node[T]
	length      int
	collective  int // of these, messages of collective calls
	number      uint64
	index       index[Node[T]] // of all; nil: there is none
}

// A Node is a message's place in the queue, and its envelope. It is part of the message, whose
// address is Of.
type Node[T any] struct {
	Envelope
	Of *T
	// Send is the send that waits until the message is received, or nil. When it ends, it removes
	// the message from the queue and does nothing else, because the sender may be in another epoch.
	Send *transport.Request
	// Cancelled says that the sender has taken the message back. An Mprobe may have the message
	// still, and its Mrecv ends with this (Redeem).
	Cancelled  bool
	probed     bool // it is in Matcher.Probed
	next, prev *Node[T]
	number     uint64 // 0: it is in no queue
}

// Len returns the number of messages.
func (q *Messages[T]) Len() int { return q.length }

// OfCalls returns how many of them belong to collective calls.
func (q *Messages[T]) OfCalls() int { return q.collective }

// Push appends a message.
func (q *Messages[T]) Push(n *Node[T]) {
	n.next, n.prev = nil, q.last
	if q.last == nil {
		q.first = n
	} else {
		q.last.next = n
	}
	q.last = n
	q.length++
	q.count(n, 1)
	// Numbers only grow. They give the index the order in which messages came (F5), and tell that a
	// Node is in a queue.
	q.number++
	n.number = q.number
	if q.index != nil {
		q.index.add(n.Key, n.number, n)
	}
}

// Remove removes a message, which is in the queue. After that the Node may be pushed again, here or
// to another queue: Match removes a message from Arrived before Keep pushes it to Probed.
func (q *Messages[T]) Remove(n *Node[T]) {
	if q.index != nil {
		q.index.remove(n.Key, n.number)
	}
	if n.prev == nil {
		q.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		q.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.next, n.prev, n.number = nil, nil, 0
	q.count(n, -1)
	// Half as long, so a queue whose length is about few does not make and drop an index again and
	// again.
	if q.length--; q.length <= few/2 {
		q.index = nil
	}
}

// count keeps collective, by which a transport limits what it keeps, and Call knows at once that
// there is nothing to compare.
func (q *Messages[T]) count(n *Node[T], d int) {
	if transport.IsCollective(n.Tag) {
		q.collective += d
	}
}

// All yields the messages, oldest first. Messages that it has yielded may be removed.
func (q *Messages[T]) All() iter.Seq[*Node[T]] {
	return func(yield func(*Node[T]) bool) {
		// Next is read before n is given away, because Remove clears the links of n.
		for n := q.first; n != nil; {
			next := n.next
			if !yield(n) {
				return
			}
			n = next
		}
	}
}

// Find returns the oldest message that r matches, or nil. If r has a wildcard it may look at all
// messages. Messages of other epochs are in the queue too. They never match, because the epoch is
// part of the key (P3).
func (q *Messages[T]) Find(r *transport.Request) *Node[T] {
	directed := r.Peer != transport.AnySource && r.Tag != transport.AnyTag
	if directed && q.index != nil {
		return q.indexed(r)
	}
	looked := 0
	for n := q.first; n != nil; n = n.next {
		// A wildcard has no key, so such a search does not profit from an index.
		if directed && looked == few {
			return q.indexed(r)
		}
		looked++
		if takes(r, &n.Key) {
			return n
		}
	}
	return nil
}

// indexed is Find by the index. It makes the index if there is none. It takes as long as a look at
// all messages, but only the first time: Push and Remove keep the index up to date. The messages
// are added in their order, as add requires.
func (q *Messages[T]) indexed(r *transport.Request) *Node[T] {
	if q.index == nil {
		q.index = make(index[Node[T]])
		for n := q.first; n != nil; n = n.next {
			q.index.add(n.Key, n.number, n)
		}
	}
	return q.index.first(keyOf(r)).of
}
