package local

import (
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// working counts the pieces of work that use a rank's buffers after the requests have been taken
// out of all lists. There are two: a long message is copied without a lock; and the end of a
// request of a collective operation may start the next step of its algorithm, with the program's
// function in it. Any goroutine may do such work, and may call Advance while it does. So no
// goroutine waits for the count to reach 0. The one that ends the last piece of work calls the
// functions in waiting.
type working struct {
	// Both are in one word, so the goroutine that ends a piece of work learns in one atomic
	// operation that it was the last one and that somebody waits. If nobody does, it takes no lock.
	count atomic.Int64 // twice their number, plus 1 if waiting is not empty

	mu      sync.Mutex
	waiting []func()
}

// begin counts one more piece of work. The caller holds the mu of the side in which the request
// was.
func (s *Comm) begin() { s.working.count.Add(2) }

// tell tells the end of r, which is the last piece of work for it.
func (s *Comm) tell(r *transport.Request) {
	defer func() { // even if the program's function ends the goroutine
		if s.working.count.Add(-2) == 1 {
			s.working.tell()
		}
	}()
	r.Done.Completed(r)
}

// whenQuiet calls f when no work is counted, at once if none is.
func (w *working) whenQuiet(f func()) {
	if w.count.Load() == 0 {
		f()
		return
	}
	w.mu.Lock()
	w.waiting = append(w.waiting, f)
	// It is set with mu, after f is in waiting: a goroutine that finds it set finds f there.
	w.count.Or(1)
	w.mu.Unlock()
	w.tell()
}

// tell calls the functions in waiting, if no work is counted.
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
