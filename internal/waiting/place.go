package waiting

import "sync/atomic"

// A Sleeper is what a goroutine waits for if it has work to do while it waits. Woken says that
// the wait is over; it is cheap and may be called repeatedly. Sleep returns a channel that
// delivers when the Sleeper is Woken, and perhaps earlier, until Rise is called.
type Sleeper interface {
	Woken() bool
	Sleep() <-chan struct{}
	Rise()
}

// A Place is where one goroutine waits for one future.
type Place struct {
	Spare bool // for the Keeper's use
	// Observe, if not nil, is called by the goroutine when it is about to block for one of these
	// futures. The goroutine calls over when it is not blocked any more.
	Observe func(...*Cell) (over func())
	// Drive, if not nil, waits for this Place or for several futures: until s is Woken, or ended
	// is closed. It says whether s is Woken.
	Drive func(s Sleeper, ended <-chan struct{}) (woken bool)

	wake   chan struct{}          // delivers to the goroutine; with Drive, only while it is asleep
	slot   *atomic.Pointer[Place] // the slot of the Cell; the Place is Woken when it is not in the slot
	asleep atomic.Bool            // with Drive: the goroutine receives from wake
}

// NewPlace returns a Place. A Keeper keeps used Places for the next Wait. A global pool must not,
// because a Place belongs to the synctest bubble in which it was made.
func NewPlace() *Place { return &Place{wake: make(chan struct{}, 1)} }

// Woken says whether the wait is over.
func (p *Place) Woken() bool { return p.slot.Load() != p }

// Sleep returns a channel that delivers when the Place is Woken, and perhaps earlier.
func (p *Place) Sleep() <-chan struct{} {
	p.asleep.Store(true)
	if p.Woken() {
		p.rouse()
	}
	return p.wake
}

// Rise ends what Sleep began.
func (p *Place) Rise() { p.asleep.Store(false) }

// Nudge makes the goroutine that waits in the Place, if there is one, park again. It does nothing
// if there is a Drive.
func (p *Place) Nudge() { p.rouse() }

// Nudged delivers when the Place is nudged, and perhaps at other times.
func (p *Place) Nudged() <-chan struct{} { return p.wake }

// rouse wakes the goroutine. Its Place has been removed from its slot, unless it is nudged.
func (p *Place) rouse() {
	if p.Drive == nil || p.asleep.Load() {
		select {
		case p.wake <- struct{}{}:
		default: // it was woken already
		}
	}
}

// await blocks until the Place is woken or ended is closed, and says which.
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
