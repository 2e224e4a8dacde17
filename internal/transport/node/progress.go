package node

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/waiting"
)

const (
	polls       = 20                     // in one go, by a goroutine that waits
	glances     = 100                    // by one that is about to
	mixed       = 4                      // of the fabric, where packets may come through rings as well
	lastPackets = 1 << 14                // of all, looked for what the dead had sent: the living may never stop
	seldom      = 128                    // turns between those with the fabric, where nothing is expected of it
	period      = 500 * time.Microsecond // of progress when nobody waits; a timer may take a millisecond
	longNap     = 50 * time.Millisecond  // the same, of who dozes, where nobody asks for a sign of life
	awake       = 2000                   // periods with nothing after which it does
	attentive   = 500                    // turns after which nothing is expected soon, though somebody waits
)

// goOn makes progress from time to time while no goroutine is in await; more often while goroutines wait in
// other ways. It always sends reminders.
func (e *engine) goOn() {
	timer := time.NewTimer(period)
	reminded := time.Now()
	for idle := 0; ; idle++ {
		switch {
		case e.watched.Load() == 0 || idle > attentive || e.driving.busy.Load() || e.over.Load():
			wait := period
			if idle > awake && e.dozing.Load() {
				wait = e.nap
			}
			timer.Reset(wait)
			select {
			case <-e.stop:
				return
			case <-timer.C:
			case <-e.attend:
				idle = 0
			}
		default:
			runtime.Gosched()
			yield()
		}
		if e.driving.try() {
			for e.progress(1) {
				idle = 0
			}
			e.driving.end()
		}
		if now := time.Now(); now.Sub(reminded) >= remindPeriod {
			reminded = now
			e.remind()
		}
	}
}

// wake makes goOn look soon, and often for a while.
func (e *engine) wake() {
	select {
	case e.attend <- struct{}{}:
	default:
	}
}

// await makes progress until w is woken, ended is closed, or the fabric has failed. If another goroutine is
// here already, it lets that one make progress. While nothing happens it yields the core to other
// goroutines and processes, sooner if others of the job need it.
func (e *engine) await(w waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	for !e.driving.try() {
		over := false
		select {
		case <-e.driving.free: // the goroutine that takes this tries, and passes it on in the end
		case <-w.Sleep():
			woken = w.Woken()
			over = woken
		case <-ended:
			over = true
		}
		w.Rise()
		if over {
			return woken
		}
	}
	defer e.driving.end()
	for idle := 1; ; idle++ {
		if w.Woken() {
			return true
		}
		select {
		case <-ended:
			return false
		default:
		}
		if e.over.Load() {
			return w.Woken()
		}
		if e.move(e.looks(polls), false) {
			e.core.came()
			idle = 0
			continue
		}
		if idle%e.often == 0 {
			runtime.Gosched()
		}
		if e.core.polite() || idle > briefly {
			e.core.yield()
		}
	}
}

// glance makes progress for about as long as a short message takes, unless another goroutine does.
func (e *engine) glance() {
	if !e.driving.busy.Load() {
		e.move(e.looks(glances), false)
	}
}

// looks is how often to look for packets before a core that is shared would be yielded.
func (e *engine) looks(most int) int {
	if e.core.polite() {
		return 1
	}
	return most
}

// driving selects the one goroutine that makes progress.
type driving struct {
	busy atomic.Bool
	free chan struct{} // a waiting goroutine may try again
}

func (d *driving) try() bool { return !d.busy.Load() && d.busy.CompareAndSwap(false, true) }

func (d *driving) end() {
	d.busy.Store(false)
	select {
	case d.free <- struct{}{}:
	default:
	}
}

// lock locks mu to begin an operation. The goroutine that makes progress lets such goroutines go first.
func (e *engine) lock() {
	if !e.mu.TryLock() {
		e.wanted.Add(1)
		e.mu.Lock()
		e.wanted.Add(-1)
	}
}

// progress moves messages, and says whether something happened.
func (e *engine) progress(times int) bool { return e.move(times, true) }

// move is progress that looks at most times times. It usually leaves out the fabric, unless all is set, or
// the fabric has work for this process or for processes on other machines.
func (e *engine) move(times int, all bool) (happened bool) {
	for e.wanted.Load() > 0 {
		runtime.Gosched()
	}
	e.mu.Lock()
	if e.err != nil {
		e.mu.Unlock()
		return false
	}
	looks := times
	if e.lagging > 0 {
		happened = e.catchUp()
	}
	e.turns++
	due := e.turns%seldom == 0 || e.core.polite() && e.turns%(seldom/8) == 0 // a turn may take long
	ask := all || len(e.in) < e.size || len(e.transfers) > 0 || due || e.fabric.Pressing()
	if ask || happened {
		looks = 1
	}
	for came := false; looks > 0 && !came && e.wanted.Load() == 0; looks-- {
		came = e.look()
		happened = happened || came
	}
	if len(e.pulls) > 0 {
		e.pull()
		happened = true
	}
	if e.lookForEnds != nil && (all || due) {
		e.lookForEnds()
	}
	if ask && (!happened || due) { // due: a neighbour may keep sending
		if len(e.in) > 0 {
			times = min(times, mixed)
		}
		moved, died := e.fabric.Poll((*Sink)(e), times)
		if died || e.heart != nil && len(e.heart.declared) > 0 {
			e.findDeaths()
		}
		happened = moved || died || happened
	}
	e.unlock()
	return happened
}
