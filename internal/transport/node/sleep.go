package node

import (
	"slices"
	"time"
)

// wake makes goOn make progress soon. It needs no lock. call comes first. A goroutine in sleep that
// has armed the bell looks at attend afterwards. So it either finds the call, or the bell wakes it.
func (e *engine) wake() {
	e.call()
	if b := e.bell.Load(); b != nil {
		b.Wake()
	}
}

// ring wakes goOn if it sleeps, because there is work that nobody rings for.
func (e *engine) ring() {
	if b := e.bell.Load(); b != nil {
		b.Ring()
	}
}

// call makes goOn look soon, unless it sleeps: then a packet wakes it.
func (e *engine) call() {
	select {
	case e.attend <- struct{}{}:
	default:
	}
}

// patience is how long a goroutine looks for packets before it sleeps. To sleep and to be woken
// takes longer than most messages take. It is not worth that for a message that comes soon.
func (e *engine) patience() time.Duration {
	if e.near {
		return vain
	}
	return vainFar
}

// isMoving says whether the fabric moves bytes, for which it has to be polled. The caller holds mu.
func (e *engine) isMoving() bool {
	return e.err == nil && (len(e.transfers) > 0 || e.fabric.Requests() > 0 || e.fabric.Pressing())
}

// mayGiveUp says whether a goroutine that has waited in vain for this time may sleep.
func (e *engine) mayGiveUp(waited time.Duration) bool {
	// This is asked at each move, so mu is taken only after that time.
	if waited < e.patience() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.isMoving()
}

// longestSleep returns how long this process may sleep if it has waited in vain so far: long if all
// that it waits for rings its bell.
func (e *engine) longestSleep(waited time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case len(e.pulls) > 0 || slices.ContainsFunc(e.in, (*inbox).Ready): // progress lets others go first
		return 0
	// No bell rings when the fabric has moved bytes or has room.
	case e.isMoving():
		return min(waited/8, period, e.longest)
	// Room in a ring rings no bell, so a process that lags only naps.
	case e.near && e.lagging == 0:
		return min(max(waited, e.shortest), e.longest)
	}
	return min(waited/8, longestNap, e.longest)
}

// sleep sleeps until a packet comes, or for some time, because this process has waited in vain. It
// says whether something happened.
func (e *engine) sleep(waited time.Duration) (happened bool) {
	mine := e.bell.Load()
	if mine == nil {
		time.Sleep(e.longestSleep(waited))
		return false
	}
	// Look once more after the bell is armed. A packet that came before is found, and one that
	// comes later rings. See package bell.
	mine.Arm()
	if !e.driving.try() { // a goroutine waits again, and will call
		mine.Disarm()
		return false
	}
	happened = e.progress(1)
	e.driving.leave()
	if happened || len(e.attend) > 0 {
		mine.Disarm()
		return happened
	}
	return mine.Sleep(e.longestSleep(waited))
}
