package mpicx

import "sync"

// A crew is the goroutines of the ranks of one Run. More can be admitted as long as one works.
type crew struct {
	done chan struct{} // closed when none works any more

	mu      sync.Mutex
	working int
	later   map[int]bool // the ranks that were admitted
}

// newCrew returns a crew that begins with n ranks.
func newCrew(n int) *crew {
	w := &crew{done: make(chan struct{}), working: n, later: make(map[int]bool)}
	if n == 0 {
		close(w.done)
	}
	return w
}

// admit admits a rank. It returns false if the rank was admitted before, or no rank works any more.
func (w *crew) admit(rank int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.working == 0 || w.later[rank] {
		return false
	}
	w.later[rank] = true
	w.working++
	return true
}

// work runs the work of one rank.
func (w *crew) work(run func()) {
	defer func() { // runtime.Goexit gets here too
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.working--; w.working == 0 {
			close(w.done)
		}
	}()
	run()
}
