package replace

import "sync"

// An Order makes the results of calls take effect in the order in which the calls began, in
// whatever order their agreements end. The order is therefore the same at all ranks.
type Order struct {
	mu    sync.Mutex        // protects the fields; not held while a function of ended runs
	begun uint64            // the number of calls that have begun; they are numbered from 1
	over  uint64            // the results of all calls up to this one have taken effect
	ended map[uint64]func() // by call, what its result does; of calls after over
}

// Begin returns the number of a call that begins. The caller calls End for it once.
func (o *Order) Begin() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun++
	return o.begun
}

// End ends a call. It calls effect when the results of all calls before have taken effect: at once,
// or later in the goroutine that ends the last of them.
func (o *Order) End(call uint64, effect func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		o.ended = make(map[uint64]func())
	}
	o.ended[call] = effect
	for f := o.ended[o.over+1]; f != nil; f = o.ended[o.over+1] {
		o.ended[o.over+1] = nil // until it has taken effect, no other goroutine begins the next
		o.mu.Unlock()
		f()
		o.mu.Lock()
		o.over++
		delete(o.ended, o.over)
	}
}
