package mpicx

import "sync"

// turns orders the second parts of calls that have two parts. The first parts may end in any
// order. The second parts begin one after another in the order of the calls, so the order is the
// same at all ranks.
type turns struct {
	mu      sync.Mutex
	last    uint64 // the last turn that was taken; the first is 1
	over    uint64 // the last of the turns that are over
	waiting map[uint64]func()
}

// take returns the next turn. It has to be ended exactly once.
func (t *turns) take() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	return t.last
}

// await calls f when all turns before this one are over.
func (t *turns) await(turn uint64, f func()) {
	t.mu.Lock()
	if turn == t.over+1 {
		t.mu.Unlock()
		f()
		return
	}
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = make(map[uint64]func())
	}
	t.waiting[turn] = f
}

// end ends a turn. If the turn has not come yet, it is skipped when it comes.
func (t *turns) end(turn uint64) { t.await(turn, t.next) }

func (t *turns) next() {
	t.mu.Lock()
	t.over++
	f := t.waiting[t.over+1]
	delete(t.waiting, t.over+1)
	t.mu.Unlock()
	if f != nil {
		f()
	}
}
