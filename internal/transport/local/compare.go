package local

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// Ranks that have made different collective calls may all wait for each other. Then no message
// arrives that would reveal the mismatch (M2). Processes send each other reminders
// (node/reminder.go). Ranks that are goroutines are compared instead: a goroutine reads which peer
// each rank waits for, and compares the rank's call with the peer's call of the same number. A
// message of the peer would carry that call, so a comparison reports only a mismatch that such a
// message would have revealed.
//
// A comparison finds something new only in a communicator in which a rank has made a call, or has
// begun to wait for a message, since the last comparison. Such a communicator is due. While there
// are any, a timer is set when a program is about to block, or ends. If all ranks block, the calls
// that they are blocked in are therefore compared once. When all programs have ended, the
// communicators that are still due are compared. With the black channel, this also ends calls that
// wait for ranks that have left (see forsaken.go).
//
// While all ranks are blocked and nothing is due there is no timer, as testing/synctest requires.
// There is none either while no program blocks: with a timer, the scheduler reads the clock
// whenever it switches goroutines, which takes a tenth of the time of a short message.

const (
	comparePeriod = 100 * time.Millisecond
	// compareShare: a comparison locks the side of each rank. Comparisons take at most one part
	// of compareShare of the time.
	compareShare = 100
)

// comparison decides when the calls of a job's ranks are compared.
type comparison struct {
	processes []process // the ranks of the job
	// untimed says that communicators are due and no timer is set. It changes under mu.
	untimed atomic.Bool

	mu       sync.Mutex
	due      bool // communicators are due, as they say themselves
	timer    *time.Timer
	set      bool             // the timer is set
	running  bool             // the communicators that were due are being compared
	again    bool             // a program was about to block while running
	took     [2]time.Duration // by the last two comparisons
	over     bool
	underway sync.WaitGroup // counts the timer while it is set, and run
}

// changed notes that a rank has made a call, or waits in one. The caller has stored this under
// the lock of the rank's side, so a comparison that begins now finds it.
func (c *communicator) changed() {
	if !c.due.Load() {
		c.compare.add(c)
	}
}

func (c *comparison) add(of *communicator) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over && !of.due.Swap(true) {
		c.due = true
		c.untimed.Store(!c.set)
	}
}

// soon schedules a comparison of the communicators that are due. It is called when a program is
// about to block, or ends.
func (c *comparison) soon() {
	if c.untimed.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.schedule()
	}
}

// schedule sets the timer if it is needed. The caller holds mu.
func (c *comparison) schedule() {
	c.again = c.running
	if c.over || c.set || c.running || !c.due {
		return
	}
	c.untimed.Store(false)
	c.set = true
	c.underway.Add(1)
	c.timer = time.AfterFunc(c.wait(), c.run)
}

// wait returns the time until the next comparison. A single one may have taken long only because
// the process was stopped, or other processes had the processor.
func (c *comparison) wait() time.Duration {
	return max(comparePeriod, compareShare*min(c.took[0], c.took[1]))
}

// run compares the calls of the communicators that are due.
func (c *comparison) run() {
	defer c.underway.Done()
	c.mu.Lock()
	c.due, c.set, c.running = false, false, true
	c.mu.Unlock()
	began := time.Now()
	c.compareAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = [2]time.Duration{c.took[1], time.Since(began)}
	c.running = false
	if c.again {
		c.schedule()
	}
}

func (c *comparison) compareAll() {
	for i := range c.processes {
		for _, d := range c.processes[i].live() {
			if d.due.Swap(false) { // before the comparison, which may miss later changes
				gone := d.gone()
				d.compareCalls()
				d.endForsakenCalls(gone)
			}
		}
	}
}

// Stop compares the calls of c's job that are due a last time, and ends the comparisons. None is
// running when it returns.
func (s *Comm) Stop() {
	j := &s.comm.compare
	j.mu.Lock()
	j.over = true
	j.untimed.Store(false)
	if j.set && j.timer.Stop() {
		j.set = false
		j.underway.Done()
	}
	j.mu.Unlock()
	j.underway.Wait()
	j.compareAll()
}

// A pause is what a rank waits for: a message from or to peer that belongs to a call or, for the
// agreement on a new communicator, all ranks.
type pause struct {
	epoch        transport.Epoch
	number, peer int
	own          signature.Word // the rank's call
}

// all is the peer of a pause that waits for all ranks.
const all = -1

// pauses appends what p's rank waits for to list. It does not repeat the last element.
func (s *Comm) pauses(list []pause) []pause {
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(r *transport.Request) {
		number, waits := s.WaitsIn(r, s.rank)
		own, known := s.Made(r.Epoch, number)
		if !waits || !known {
			return
		}
		w := pause{r.Epoch, number, r.Peer, own}
		if r.Tag == transport.NoTag {
			w.peer = all
		}
		if len(list) > 0 && list[len(list)-1] == w {
			return
		}
		if before := s.Before(r.Epoch, number); before > 0 {
			list = append(list, pause{r.Epoch, before, w.peer, own})
		}
		list = append(list, w)
	}
	for r := range s.Posted.All() {
		add(r)
	}
	for _, m := range s.listed() {
		add(&transport.Request{Peer: m.dest, Tag: m.Tag, Epoch: m.Epoch, Signature: m.Signature})
	}
	return list
}

// contradicts returns the envelope of a message that p's rank would send in the call of w, and
// whether p's rank has made another call than the rank that waits.
func (s *Comm) contradicts(w pause) (e match.Envelope, differs bool) {
	s.mu.Lock()
	theirs, known := s.Made(w.epoch, w.number)
	s.mu.Unlock()
	e.Key = match.Key{Epoch: w.epoch, Source: s.rank, Tag: transport.CollectiveTag(w.number)}
	e.Signature = theirs
	return e, known && !w.own.Fits(theirs)
}

// odd is a rank that waits for a rank that has made another call.
type odd struct {
	*Comm
	peer match.Envelope
}

// compareCalls halts the ranks that wait for a rank that has made another call, and those that wait
// for ranks that wait for a bad call.
func (c *communicator) compareCalls() {
	for c.haltOdd() {
	}
}

// haltOdd says whether it has halted any rank.
func (c *communicator) haltOdd() (some bool) {
	var found []odd
	var list []pause
	forAll := make(map[pause][]*Comm)
	for i := range c.sides {
		p := &c.sides[i]
		list = p.pauses(list[:0])
		for _, w := range list {
			if w.peer == all {
				forAll[w] = append(forAll[w], p)
			} else if e, differs := c.sides[w.peer].contradicts(w); differs {
				found = append(found, odd{p, e})
			}
		}
	}
	for w, waiting := range forAll { // few entries: all ranks take part in the same agreement
		for i := range c.sides {
			if e, differs := c.sides[i].contradicts(w); differs {
				for _, p := range waiting {
					found = append(found, odd{p, e})
				}
				break
			}
		}
	}
	for i := range found {
		p := found[i].Comm
		p.mu.Lock()
		cause := p.Contradicts(&found[i].peer)
		p.mu.Unlock()
		if cause != nil {
			p.halt(cause)
			some = true
		}
	}
	return some
}
