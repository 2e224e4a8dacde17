package local

import (
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// working counts what is done with the buffers of a rank after their requests have been taken out of
// all lists: long messages are copied without a lock, and the end of a collective operation's request
// may set off a step, with the program's function in it.
//
// It is counted on any goroutine, and Advance may be called within it. So nothing waits for it: what
// comes last calls those that want to know.
type working struct {
	count atomic.Int64 // twice their number, plus 1 if waiting is not empty

	mu      sync.Mutex
	waiting []func()
}

// begin counts one more. The caller holds the mu of the side in which the request was.
func (s *side) begin() { s.working.count.Add(2) }

// tell tells the end of r, which is the last that is done for it.
func (s *side) tell(r *transport.Request) {
	defer func() { // even if the program's function ends the goroutine
		if s.working.count.Add(-2) == 1 {
			s.working.tell()
		}
	}()
	r.Done.Completed(r)
}

// whenQuiet calls f once what is counted now is done.
func (w *working) whenQuiet(f func()) {
	if w.count.Load() == 0 {
		f()
		return
	}
	w.mu.Lock()
	w.waiting = append(w.waiting, f)
	w.count.Or(1)
	w.mu.Unlock()
	w.tell()
}

// tell calls those that wait, if nothing is counted.
func (w *working) tell() {
	w.mu.Lock()
	if !w.count.CompareAndSwap(1, 0) {
		w.mu.Unlock()
		return
	}
	waiting := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}
