package node

import (
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// news is something to tell when mu is free: that a request has ended, a message or a death for a
// listener, or a function to call. One of request, to and call is set.
type news struct {
	// A request in the news is in no queue any more, so nothing else ends it.
	request *transport.Request // has ended
	to      transport.Listener
	from    int    // of the message, or the rank that has died
	payload []byte // of the message
	died    bool   // it is a death, not a message
	call    func()
}

// A teller tells news when the engine's mu is free, in order, by one goroutine at a time. The order
// matters: news that follows the end of a request may free buffers that this end still uses (P4).
// News cannot be told with mu held: Completed starts operations, and a listener takes locks under
// which it calls this package.
type teller struct {
	news []news
	told []news // memory for reuse by tell
	// telling says what the goroutine that tells news tells: toldNothing, toldEnd or toldAll.
	// Without mu it changes only from toldEnd to toldNothing.
	telling atomic.Int32
}

// The values of teller.telling: what the goroutine that tells news tells.
const (
	toldNothing = iota // there is no such goroutine
	toldEnd            // the end of one request, and there was no other news when it began
	toldAll            // all news, including news that is added meanwhile
)

// unlock unlocks mu, and tells the news. If another goroutine tells news already, that one tells
// these too.
func (e *engine) unlock() {
	// If another goroutine tells all, it looks at the news again with mu held before it stops, so
	// it finds this. If it tells one end, the swap makes it do the same. If the swap fails, that
	// goroutine has just stopped, and this one tells.
	if len(e.news) == 0 || e.telling.Load() == toldAll || e.telling.CompareAndSwap(toldEnd, toldAll) {
		e.mu.Unlock()
		return
	}
	if n := e.news[0]; len(e.news) == 1 && n.request != nil { // most often: without locking mu again
		// The slot is cleared, so that the slice does not keep a request and its buffer alive.
		e.news[0], e.news = news{}, e.news[:0]
		e.telling.Store(toldEnd)
		e.mu.Unlock()
		e.tellEnd(n.request)
		return
	}
	e.telling.Store(toldAll)
	e.tell()
}

// tellEnd tells the end of a request, and then the news that was added meanwhile. The caller does
// not hold mu.
func (e *engine) tellEnd(r *transport.Request) {
	defer func() {
		if !e.telling.CompareAndSwap(toldEnd, toldNothing) {
			e.mu.Lock()
			e.tell()
		}
	}()
	// r may be in use again as soon as this is called.
	r.Done.Completed(r)
}

// tell tells the news until there is none. If a function that it calls ends the goroutine
// (runtime.Goexit), the rest is told nevertheless. The caller holds mu; tell unlocks it.
func (e *engine) tell() {
	var all []news
	next := 0
	defer func() {
		if next >= 0 {
			e.mu.Lock()
			e.news = slices.Concat(all[next:], e.news)
			e.tell()
		}
	}()
	for len(e.news) > 0 {
		// Two slices take turns, so telling does not allocate.
		all, next = e.news, 0
		e.news, e.told = e.told[:0], nil
		e.mu.Unlock()
		for next < len(all) {
			n := &all[next]
			// next is raised before the call: if that ends the goroutine, this news is not told
			// again.
			next++
			switch {
			case n.request != nil:
				n.request.Done.Completed(n.request)
			case n.call != nil:
				n.call()
			case n.died:
				n.to.Died(n.from)
			default:
				n.to.Take(n.from, n.payload)
			}
		}
		clear(all)
		e.mu.Lock()
		e.told = all
	}
	next = -1
	e.telling.Store(toldNothing)
	e.mu.Unlock()
}

// end ends r, with an error or nil, and adds this to the news. If r is Beginning, whoever begins it
// is told instead. The caller leaves r alone afterwards: a Light request may be in use again. An
// Mprobe keeps the message as its Where.
//
// With an error even a Light request is news, because its Completed may then do more than note the
// end: it may report the error, which takes other locks.
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
		e.news = append(e.news, news{request: r})
	}
}

// endAll ends all requests of a list.
func (e *engine) endAll(list *transport.Request, err error) {
	for r := range match.List(list) {
		e.end(r, err)
	}
}
