package node

import (
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A callback is something to call when mu is free: that a request has ended, a message or a death
// for a listener, or a function. One of request, to and call is set.
type callback struct {
	// A request here is in no queue any more, so nothing else ends it.
	request *transport.Request // has ended
	to      transport.Listener
	from    int    // of the message, or the rank that has died
	payload []byte // of the message
	died    bool   // it is a death, not a message
	call    func()
}

// callbacks are called when the engine's mu is free, in order, by one goroutine at a time. The
// order matters: what follows the end of a request may free buffers that this end still uses (P4).
// They cannot be called with mu held: Completed starts operations, and a listener takes locks under
// which it calls this package.
type callbacks struct {
	due    []callback
	called []callback // memory for reuse by callAll
	// calling says what the goroutine that calls callbacks calls: callingNone, callingEnd or
	// callingAll. Without mu it changes only from callingEnd to callingNone.
	calling atomic.Int32
}

// The values of calling.
const (
	callingNone = iota // there is no such goroutine
	callingEnd         // the end of one request, and nothing else was due when it began
	callingAll         // all that is due, including what is added meanwhile
)

// unlock unlocks mu, and calls what is due. If another goroutine calls callbacks already, that one
// calls these too.
func (e *engine) unlock() {
	// If another goroutine calls all, it looks at due again with mu held before it stops, so it
	// finds this. If it calls one end, the swap makes it do the same. If the swap fails, that
	// goroutine has just stopped, and this one calls.
	if len(e.due) == 0 || e.calling.Load() == callingAll || e.calling.CompareAndSwap(callingEnd, callingAll) {
		e.mu.Unlock()
		return
	}
	if c := e.due[0]; len(e.due) == 1 && c.request != nil { // most often: without locking mu again
		// The slot is cleared, so that the slice does not keep a request and its buffer alive.
		e.due[0], e.due = callback{}, e.due[:0]
		e.calling.Store(callingEnd)
		e.mu.Unlock()
		e.callEnd(c.request)
		return
	}
	e.calling.Store(callingAll)
	e.callAll()
}

// callEnd tells the end of a request, and then calls what was added meanwhile. The caller does not
// hold mu.
func (e *engine) callEnd(r *transport.Request) {
	defer func() {
		if !e.calling.CompareAndSwap(callingEnd, callingNone) {
			e.mu.Lock()
			e.callAll()
		}
	}()
	// r may be in use again as soon as this is called.
	r.Done.Completed(r)
}

// callAll calls what is due until there is nothing. If a callback ends the goroutine
// (runtime.Goexit), the rest is called nevertheless. The caller holds mu; callAll unlocks it.
func (e *engine) callAll() {
	var all []callback
	next := 0
	defer func() {
		if next >= 0 {
			e.mu.Lock()
			e.due = slices.Concat(all[next:], e.due)
			e.callAll()
		}
	}()
	for len(e.due) > 0 {
		// Two slices take turns, so this does not allocate.
		all, next = e.due, 0
		e.due, e.called = e.called[:0], nil
		e.mu.Unlock()
		for next < len(all) {
			c := &all[next]
			// next is raised before the call: if that ends the goroutine, it is not made again.
			next++
			switch {
			case c.request != nil:
				c.request.Done.Completed(c.request)
			case c.call != nil:
				c.call()
			case c.died:
				c.to.Died(c.from)
			default:
				c.to.Take(c.from, c.payload)
			}
		}
		clear(all)
		e.mu.Lock()
		e.called = all
	}
	next = -1
	e.calling.Store(callingNone)
	e.mu.Unlock()
}

// end ends r, with an error or nil, and adds a callback. If r is Beginning, whoever begins it is
// told instead. The caller leaves r alone afterwards: a Light request may be in use again. An
// Mprobe keeps the message as its Where. With an error even a Light request has a callback, because
// its Completed may then do more than note the end: it may report the error, which takes other
// locks.
func (e *engine) end(r *transport.Request, err error) {
	if r.Err = err; err != nil || r.Kind != transport.Mprobing {
		r.Where = nil
	}
	switch {
	case r.Beginning:
		r.Ended = true
	case r.Light && err == nil && r.Signature == r.Status.Signature:
		r.Done.Completed(r)
	default:
		e.due = append(e.due, callback{request: r})
	}
}

// endAll ends all requests of a list.
func (e *engine) endAll(list *transport.Request, err error) {
	for r := range match.List(list) {
		e.end(r, err)
	}
}
