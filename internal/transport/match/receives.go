package match

import (
	"iter"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Receives are the receives and probes that wait for messages, in the order in which they were
// posted. They are linked by their Private fields. They share one queue because their order
// matters: a probe gets a message only if no receive that was posted before it takes the message.
type Receives struct {
	// The links are in the requests, so to post one allocates nothing. A request can be in one
	// queue at a time. So Next and Prev are free for other lists only after Remove.
	first, last *transport.Request
	length      int
	number      uint64
	index       index[transport.Request] // of all; nil: there is none
}

// Len returns the number of requests.
func (q *Receives) Len() int { return q.length }

// Push appends r.
func (q *Receives) Push(r *transport.Request) {
	r.Next, r.Prev = nil, q.last
	if q.last == nil {
		q.first = r
	} else {
		q.last.Next = r
	}
	q.last = r
	q.length++
	q.number++
	// The number is the order in which requests were posted, across all keys: see indexed.
	r.Number = q.number
	if q.index != nil {
		q.index.add(keyOf(r), r.Number, r)
	}
}

// Remove removes r, which is in the queue.
func (q *Receives) Remove(r *transport.Request) {
	if q.index != nil {
		q.index.remove(keyOf(r), r.Number)
	}
	if r.Prev == nil {
		q.first = r.Next
	} else {
		r.Prev.Next = r.Next
	}
	if r.Next == nil {
		q.last = r.Prev
	} else {
		r.Next.Prev = r.Prev
	}
	r.Next, r.Prev = nil, nil
	// Half of few, for the reason given in Messages.Remove.
	if q.length--; q.length <= few/2 {
		q.index = nil
	}
}

// All yields the requests, oldest first. Requests that it has yielded may be removed.
func (q *Receives) All() iter.Seq[*transport.Request] {
	return func(yield func(*transport.Request) bool) {
		// Next is read before r is given away, because Remove clears the links of r.
		for r := q.first; r != nil; {
			next := r.Next
			if !yield(r) {
				return
			}
			r = next
		}
	}
}

// Find returns the oldest request that matches the message, or nil. A message has no wildcards, so
// here the index serves every search; the receives may have some.
func (q *Receives) Find(m Key) *transport.Request {
	if q.index != nil {
		return q.indexed(m)
	}
	looked := 0
	for r := q.first; r != nil; r = r.Next {
		if looked == few {
			return q.indexed(m)
		}
		looked++
		if takes(r, &m) {
			return r
		}
	}
	return nil
}

// indexed is Find by the index. It makes the index if there is none. The result is the oldest of
// the requests with the message's source and tag, with a wildcard for one of them, or for both. A
// receive with NoTag is under a key that no message has: it ends only by an error (Redeem).
func (q *Receives) indexed(m Key) *transport.Request {
	if q.index == nil {
		q.index = make(index[transport.Request])
		for r := q.first; r != nil; r = r.Next {
			q.index.add(keyOf(r), r.Number, r)
		}
	}
	// A receive with a wildcard is in the index under the wildcard itself. So a message looks under
	// each key that may have been posted for it, and takes the oldest of what it finds (F5).
	keys := [4]Key{m, {m.Epoch, transport.AnySource, m.Tag}, {m.Epoch, m.Source, transport.AnyTag}, {m.Epoch, transport.AnySource, transport.AnyTag}}
	wanted := keys[:]
	// AnyTag matches only tags of programs.
	if m.Tag < 0 {
		wanted = keys[:2]
	}
	var oldest entry[transport.Request]
	// Numbers count all requests of the queue, so those of different keys can be compared.
	for _, k := range wanted {
		if e := q.index.first(k); e.of != nil && (oldest.of == nil || e.number < oldest.number) {
			oldest = e
		}
	}
	return oldest.of
}
