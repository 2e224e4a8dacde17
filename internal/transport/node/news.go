package node

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// news is a request that has ended, a message or a death for a listener, or a call for a fabric.
type news struct {
	request *transport.Request
	to      transport.Listener
	from    int
	payload []byte
	died    bool
	call    func() // of the fabric
}

// What the goroutine that tells news tells.
const (
	toldNothing = iota // there is none
	toldEnd            // the end of one request; nothing has followed it
	toldAll            // all news, those that follow too
)

// unlock unlocks mu, and tells the news, unless another goroutine does.
func (e *engine) unlock() {
	if len(e.news) == 0 || e.telling.Load() == toldAll || e.telling.CompareAndSwap(toldEnd, toldAll) {
		e.mu.Unlock()
		return
	}
	if n := e.news[0]; len(e.news) == 1 && n.request != nil { // most often: without locking mu again
		e.news[0], e.news = news{}, e.news[:0]
		e.telling.Store(toldEnd)
		e.mu.Unlock()
		e.tellEnd(n.request)
		return
	}
	e.telling.Store(toldAll)
	e.tell()
}

// tellEnd tells the end of a request, and then what has followed.
func (e *engine) tellEnd(r *transport.Request) {
	defer func() {
		if !e.telling.CompareAndSwap(toldEnd, toldNothing) {
			e.mu.Lock()
			e.tell()
		}
	}()
	r.Done.Completed(r)
}

// tell tells the news. If a function that it calls ends the goroutine, the rest is told nevertheless. The
// caller holds mu; tell unlocks it.
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
		all, next = e.news, 0
		e.news, e.told = e.told[:0], nil
		e.mu.Unlock()
		for next < len(all) {
			n := &all[next]
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

// end adds the end of r to the news, unless Start is beginning it.
func (e *engine) end(r *transport.Request, err error) {
	r.Where, r.Err = nil, err
	if r.Beginning {
		r.Ended = true
		return
	}
	e.news = append(e.news, news{request: r})
}

// endProbe adds the end of a probe that has found its message to the news. An Mprobe keeps the message.
func (e *engine) endProbe(r *transport.Request) {
	where := r.Where
	e.end(r, nil)
	r.Where = where
}

// endAll adds the ends of all requests of a list to the news.
func (e *engine) endAll(list *transport.Request, err error) {
	for r := range match.List(list) {
		e.end(r, err)
	}
}
