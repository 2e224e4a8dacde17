package waiting

import "sync/atomic"

// A Sleeper is what a goroutine waits for that has something to do meanwhile. Woken is
// cheap, to be asked again and again. Else there is the channel that Sleep returns,
// which delivers once the Sleeper is Woken, and perhaps before, until Rise.
type Sleeper interface {
	Woken() bool
	Sleep() <-chan struct{}
	Rise()
}

// A Place is where one goroutine waits for one future.
type Place struct {
	Spare bool // for the Keeper's use
	// Observe, if not nil, is called by the goroutine when it is about to block for one of these
	// futures; what it returns, when it is not blocked any more.
	Observe func(...*Cell) (over func())
	// Drive, if not nil, is how the goroutine waits, for this Place or for several
	// futures: until s is Woken, which it says, or ended is closed.
	Drive func(s Sleeper, ended <-chan struct{}) (woken bool)

	wake   chan struct{}          // delivers to the goroutine; with Drive, while it is asleep
	slot   *atomic.Pointer[Place] // of the Cell that it waits for; it is Woken when it is not in there
	asleep atomic.Bool            // with Drive: wake is received from
}

// NewPlace returns a Place. A Keeper keeps used ones for the next Wait: they belong to
// the synctest bubble they were made in, so no global pool may.
func NewPlace() *Place { return &Place{wake: make(chan struct{}, 1)} }

// Woken says whether the wait is over.
func (p *Place) Woken() bool { return p.slot.Load() != p }

// Sleep returns a channel that delivers once the Place is Woken, and perhaps before.
func (p *Place) Sleep() <-chan struct{} {
	p.asleep.Store(true)
	if p.Woken() {
		p.rouse()
	}
	return p.wake
}

// Rise ends what Sleep began.
func (p *Place) Rise() { p.asleep.Store(false) }

// rouse wakes the goroutine, whose Place is in its slot no more.
func (p *Place) rouse() {
	if p.Drive == nil {
		p.wake <- struct{}{}
	} else if p.asleep.Load() {
		select {
		case p.wake <- struct{}{}:
		default: // it has been already
		}
	}
}

// awaitObserved is await for the future of c, of a Place with Observe.
func (p *Place) awaitObserved(c *Cell, ended <-chan struct{}) (woken bool) {
	over := p.Observe(c)
	woken = p.await(ended)
	over()
	return woken
}

// await blocks until the Place is woken, or ended is closed; it says which.
func (p *Place) await(ended <-chan struct{}) (woken bool) {
	switch {
	case p.Drive != nil:
		return p.Drive(p, ended)
	case ended == nil:
		<-p.wake
		return true
	}
	select {
	case <-p.wake:
		return true
	case <-ended:
		return false
	}
}
