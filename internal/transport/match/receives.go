package match

import (
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Receives are the receives and probes that wait for messages, in the order in which they were
// posted. They are linked by their Private fields. They share one queue because their order
// matters: a probe gets a message only if no receive that was posted before it takes the message.
type Receives struct {
	queue[transport.Request, *transport.Request]
}

// Push appends r.
func (q *Receives) Push(r *transport.Request) { q.push(keyOf(r), r, &r.Links) }

// Remove removes r, which is in the queue.
func (q *Receives) Remove(r *transport.Request) { q.remove(keyOf(r), &r.Links) }

// Find returns the oldest request that matches the message, or nil. A message has no wildcards, so
// here the index serves every search; the receives may have some.
func (q *Receives) Find(m Key) *transport.Request {
	looked := 0
	for r := q.first; r != nil; r = r.Next {
		if q.index != nil || looked == few {
			return q.oldest(m)
		}
		looked++
		if takes(r, &m) {
			return r
		}
	}
	return nil
}

// oldest is Find by the index: the oldest of the requests with the message's source and tag, with a
// wildcard for one of them, or for both. A receive with NoTag is under a key that no message has:
// it ends only by an error (Redeem).
func (q *Receives) oldest(m Key) *transport.Request {
	// A receive with a wildcard is in the index under the wildcard itself. So a message looks under
	// each key that may have been posted for it, and takes the oldest of what it finds (F5).
	keys := [4]Key{m, {m.Epoch, transport.AnySource, m.Tag}, {m.Epoch, m.Source, transport.AnyTag}, {m.Epoch, transport.AnySource, transport.AnyTag}}
	wanted := keys[:]
	// AnyTag matches only tags of programs.
	if m.Tag < 0 {
		wanted = keys[:2]
	}
	var oldest entry[transport.Request]
	for _, k := range wanted {
		if e := q.indexed(keyOf).first(k); e.of != nil && (oldest.of == nil || e.number < oldest.number) {
			oldest = e
		}
	}
	return oldest.of
}
