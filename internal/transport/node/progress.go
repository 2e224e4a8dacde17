package node

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/waiting"
)

const (
	polls   = 20  // looks for packets in one move, by a goroutine that waits
	glances = 100 // the same, by a goroutine that is about to wait
	// atStart is the same, for each request of a step that is beginning. Ranks that are in step
	// send at the same time, and a message takes about as long as these looks.
	atStart = 20
	mixed   = 4 // polls of the fabric in one move, if packets may come through rings as well
	// lastPackets is the most times that packets are taken before a death is noted. There is a
	// limit because the living may send packets without end.
	lastPackets = 1 << 14
	seldom      = 128 // moves between two polls of a fabric of which nothing is expected
	// period is the time between two moves of goOn while the program computes. A timer may take a
	// millisecond.
	period = 500 * time.Microsecond
	// vain is how long a goroutine looks for packets before it sleeps. A ring wakes it at once; if
	// it has to look at the fabric itself, as between machines, it looks for vainFar, and then
	// sleeps for an eighth of the time that it has waited, longestNap at most.
	vain       = 100 * time.Microsecond
	vainFar    = 8 * vain
	longestNap = time.Millisecond
	// calm is the number of periods without a packet after which goOn sleeps though the program
	// computes: until then it lets packets wait, so that they do not interrupt the program often.
	calm = 20
)

// A mover says which goroutine of the engine makes progress, and when.
type mover struct {
	core    core
	driving driving
	moves   uint // number of calls of move
	// wanted is the number of goroutines that wait for the engine's mu to begin an operation. The
	// goroutine that makes progress lets them go first. It changes without mu.
	wanted atomic.Int32
	// often is the number of moves after which the goroutine that makes progress lets other
	// goroutines run. That may wake up a thread, so it is not done at each move.
	often int
	// watched is the number of goroutines that wait for messages and do not make progress. It
	// changes without mu.
	watched atomic.Int32
	// Where all that this process waits for rings its bell, goOn sleeps for as long as it has
	// waited, but for shortest at least and longest at most.
	shortest, longest time.Duration
	attend            chan struct{} // makes goOn look soon
	stop              chan struct{} // closed by End
	// idle waits for the engine's goroutines: goOn, which makes progress while no other goroutine
	// does, and beat.
	idle sync.WaitGroup
}

// goOn makes progress from time to time while the program computes, and sleeps for the goroutines
// that have waited in vain: whatever they wait for wakes it. It also sends reminders, even if
// another goroutine makes progress. It runs on a goroutine of its own until End.
func (e *engine) goOn() {
	timer := time.NewTimer(period)
	var since time.Time // nothing has happened since
	quiet := 0          // periods without a packet, while the program computes
	// Where Go has one thread to run on, a sleep would keep it from the program for some time.
	sleepless := runtime.GOMAXPROCS(0) == 1
	for reminded := time.Now(); ; {
		select {
		// A goroutine that has looked in vain is parked, or something has happened that rings no
		// bell. So this one looks once, and then sleeps.
		case <-e.attend: // before stop, of which it may tell
			since = time.Now().Add(-e.patience())
		default:
		}
		select {
		case <-e.stop:
			return
		default:
		}
		happened := false
		switch busy := e.driving.busy.Load(); {
		// Nothing needs this goroutine soon: another one makes progress, or there is nothing to
		// move, or the program computes. It looks once a period. Then messages of error channels
		// still pass through this rank (P8), at little cost to the program.
		case busy || e.over.Load() || e.watched.Load() == 0 && (quiet <= calm || sleepless):
			timer.Reset(period)
			select {
			case <-timer.C:
				quiet++
			case <-e.attend:
			}
			if busy {
				quiet = 0
			}
			since = time.Now().Add(-e.patience())
		// A goroutine waits and is parked. What it waits for has come a moment ago or comes soon,
		// so looking costs less than a sleep.
		case time.Since(since) < e.patience():
			runtime.Gosched()
			yield()
		default:
			happened = e.sleep(time.Since(since))
		}
		// After each wait it takes what has come. If another goroutine makes progress by now, that
		// takes it.
		if e.driving.try() {
			for e.progress(1) {
				happened = true
			}
			if e.driving.leave(); happened {
				since, quiet = time.Now(), 0
				e.driving.invite()
			}
		}
		// Ranks that wait for each other may make progress all the time, and in vain, so reminders
		// do not depend on who does.
		if n := time.Since(reminded) / remindPeriod; n > 0 {
			reminded = reminded.Add(n * remindPeriod)
			e.remind(int(n))
		}
	}
}

// await makes progress until w is woken, ended is closed, or the engine has failed. It returns
// whether w was woken. If another goroutine makes progress already, or nothing has happened for a
// while, this one is parked.
func (e *engine) await(w waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	for {
		if e.driving.try() {
			if woken, over := e.drive(w, ended); over {
				e.driving.invite()
				return woken
			}
		}
		woken, over := e.park(w, ended)
		if over {
			return woken
		}
	}
}

// park waits without making progress, until this goroutine is invited to.
func (e *engine) park(w waiting.Sleeper, ended <-chan struct{}) (woken, over bool) {
	// It is counted before the call, so goOn does not take the program for one that computes.
	e.watched.Add(1)
	defer e.watched.Add(-1)
	defer w.Rise()
	switch {
	case e.over.Load(): // the others find it too
		e.driving.invite()
		return w.Woken(), true
	case !e.driving.busy.Load():
		e.call()
	}
	select {
	// Await tries again. Another goroutine may be first: then this one is parked again.
	case <-e.driving.free:
	case <-w.Sleep():
		woken = w.Woken()
		over = woken
	case <-ended:
		over = true
	}
	return woken, over
}

// drive makes progress, for await. While nothing happens it yields the core to other goroutines and
// processes, sooner if another process of the job needs it. Over says that the wait is over;
// otherwise it was in vain. What w waits for is told by unlock in move, often on this goroutine. So
// w is looked at after each move.
func (e *engine) drive(w waiting.Sleeper, ended <-chan struct{}) (woken, over bool) {
	defer e.driving.leave()
	var since time.Time
	for idle := 1; ; idle++ {
		if w.Woken() {
			return true, true
		}
		select {
		case <-ended:
			return false, true
		default:
		}
		if e.over.Load() {
			return w.Woken(), true
		}
		if e.move(e.looks(polls), false) {
			e.core.came()
			idle = 0
			since = time.Time{}
			continue
		}
		// A goroutine in a loop keeps its thread. Others that are ready, such as those just woken,
		// may have to wait for Go's preemption, which takes 10 ms.
		if idle%e.often == 0 {
			runtime.Gosched()
		}
		if e.core.polite() || idle > briefly {
			// The clock is read only once the core is yielded: to read it takes longer than a look.
			if since.IsZero() {
				since = time.Now()
			} else if e.mayGiveUp(time.Since(since)) {
				return false, false
			}
			e.core.yield()
		}
	}
}

// glance makes progress for about as long as a short message takes, unless another goroutine does.
// It does not become the goroutine that makes progress: mu is enough for one move, and the caller
// is about to wait anyway.
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
	free chan struct{} // holds a value if a parked goroutine may try
}

// try makes the caller the goroutine that makes progress, unless there is one. It then has to call
// leave. The load comes first because a swap takes the cache line from the core of the goroutine
// that makes progress, even if it fails.
func (d *driving) try() bool { return !d.busy.Load() && d.busy.CompareAndSwap(false, true) }

// leave lets another goroutine make progress.
func (d *driving) leave() { d.busy.Store(false) }

// invite makes a parked goroutine make progress: something happens here. One value is enough:
// whoever takes it tries, and invites the next one when its wait is over.
func (d *driving) invite() {
	select {
	case d.free <- struct{}{}:
	default:
	}
}

// lock locks mu to begin an operation. The goroutine that makes progress lets such goroutines go
// first. A mutex alone would not do. The goroutine that makes progress locks it again right after
// each move, and would mostly be first.
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
	// Packets that have waited for room go first: others wait for them, and they keep their order.
	if e.lagging > 0 {
		happened = e.catchUp()
	}
	e.moves++
	due := e.moves%seldom == 0 || e.core.polite() && e.moves%(seldom/8) == 0 // a move may take long
	ask := all || len(e.in) < e.size || len(e.transfers) > 0 || due || e.fabric.Pressing()
	// The fabric is polled below, which takes longer than many looks.
	if ask || happened {
		looks = 1
	}
	for came := false; looks > 0 && !came && e.wanted.Load() == 0; looks-- {
		came = e.look()
		happened = happened || came
	}
	// One chunk a move, because mu is held while it is copied.
	if len(e.pulls) > 0 {
		e.pull()
		happened = true
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
