package node

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/waiting"
)

const (
	polls   = 20  // looks for packets in one move, by a goroutine that waits
	glances = 100 // the same, by a goroutine that is about to wait
	mixed   = 4   // polls of the fabric in one move, if packets may come through rings as well
	// lastPackets is the most times that packets are taken before a death is noted. There is a
	// limit because the living may send packets without end.
	lastPackets = 1 << 14
	seldom      = 128 // every so many moves the fabric is polled, if nothing is expected of it
	// period is the time between two moves of goOn if no goroutine waits. A timer may take a
	// millisecond.
	period = 500 * time.Microsecond
	// longNap is the period while the engine dozes, unless a heart needs a shorter one.
	longNap   = 50 * time.Millisecond
	awake     = 2000 // periods without a packet after which a dozing engine takes naps
	attentive = 500  // moves without a packet after which goOn moves once a period, though watched
)

// goOn makes progress from time to time while no goroutine is in await, and more often while
// goroutines wait for messages in other ways (watched). It also sends reminders, even if another
// goroutine makes progress. It runs on a goroutine of its own until End.
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

// wake makes goOn make progress soon, and often for a while. It needs no lock.
func (e *engine) wake() {
	select {
	case e.attend <- struct{}{}:
	default:
	}
}

// await makes progress until w is woken, ended is closed, or the engine has failed. It returns
// whether w was woken. If another goroutine makes progress already, this one sleeps meanwhile.
// While nothing happens, await yields the core to other goroutines and processes, sooner if another
// process of the job needs it.
func (e *engine) await(w waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	for !e.driving.try() {
		over := false
		select {
		case <-e.driving.free: // try; when this goroutine is done, driving.end wakes the next one
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

// looks returns how often to look for packets in one move: most, or once if the core is shared.
func (e *engine) looks(most int) int {
	if e.core.polite() {
		return 1
	}
	return most
}

// driving selects the one goroutine that makes progress, of those in await and goOn.
type driving struct {
	busy atomic.Bool   // there is such a goroutine
	free chan struct{} // holds a value if one of the goroutines that wait for busy may try again
}

// try makes the caller the goroutine that makes progress, unless there is one. It then has to call
// end.
func (d *driving) try() bool { return !d.busy.Load() && d.busy.CompareAndSwap(false, true) }

// end lets another goroutine make progress, and wakes one that waits to do so.
func (d *driving) end() {
	d.busy.Store(false)
	select {
	case d.free <- struct{}{}:
	default:
	}
}

// lock locks mu to begin an operation. The goroutine that makes progress lets such goroutines go
// first.
func (e *engine) lock() {
	if !e.mu.TryLock() {
		e.wanted.Add(1)
		e.mu.Lock()
		e.wanted.Add(-1)
	}
}

// progress moves messages, and says whether something happened.
func (e *engine) progress(times int) bool { return e.move(times, true) }

// move makes a little progress: it looks into the rings at most times times. It says whether
// something happened. It leaves out the fabric in most moves, unless all is set, or messages may
// come through the fabric, or the fabric has other work.
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
	e.moves++
	due := e.moves%seldom == 0 || e.core.polite() && e.moves%(seldom/8) == 0 // a move may take long
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
