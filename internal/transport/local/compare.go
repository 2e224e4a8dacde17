package local

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// Ranks that have made different calls may all wait for each other, and then no message tells of
// it (M2). Processes send each other reminders (node/reminder.go). Here one goroutine reads what
// each rank waits for, and compares the rank's call with that which its peer has made in the same
// place: with what a message of the peer would say. So it finds nothing that would not be found if
// the message came.
//
// A comparison finds something new only in a group in which a rank has made a call, or has begun
// to wait for a message, since the one before: such a group is due. A timer is set when then a
// program is about to block, or ends. So if all ranks block, what they are blocked in is compared,
// once: a program that stands still has no timer, as testing/synctest wants it. Nor has one
// that is too fast to block: while there is a timer, the scheduler reads the clock whenever
// it switches goroutines, which takes a tenth of the time of a short message.

const (
	comparePeriod = 100 * time.Millisecond
	// compareShare: a comparison locks the port of each rank, and takes this part of the time at most.
	compareShare = 100
	// mostDue: of more, those that are closed are dropped, and the others do not wait for a program
	// that blocks.
	mostDue = 64
)

// comparison is when the calls of a job's ranks are compared.
type comparison struct {
	// untimed says that groups are due, and no timer is set. It changes under mu.
	untimed atomic.Bool

	mu       sync.Mutex
	due      []*group
	most     int // in due: then closed ones are dropped
	timer    *time.Timer
	set      bool // the timer is
	running  bool // the groups that were due are being compared
	again    bool // and a program was about to block meanwhile
	took     time.Duration
	over     bool
	underway sync.WaitGroup // of a timer that is set, and of what runs
}

// changed says that a rank has made a call, or waits in one. The caller has seen to it, under the
// lock of the rank's port, that a comparison which begins now finds that.
func (g *group) changed() {
	if !g.due.Load() {
		g.compare.add(g)
	}
}

func (c *comparison) add(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || g.due.Swap(true) {
		return
	}
	c.due = append(c.due, g)
	c.untimed.Store(!c.set)
	if len(c.due) >= max(mostDue, c.most) {
		c.due = slices.DeleteFunc(c.due, (*group).isClosed)
		c.most = 2 * len(c.due)
		c.schedule()
	}
}

// isClosed says whether all members have closed the group's communicator.
func (g *group) isClosed() bool {
	for i := range g.ports {
		if g.ports[i].attention.Load() != closed {
			return false
		}
	}
	return true
}

// soon has what is due compared. It is called when a program is about to block, or ends.
func (c *comparison) soon() {
	if c.untimed.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.schedule()
	}
}

// schedule sets the timer if it has to be. The caller holds mu.
func (c *comparison) schedule() {
	c.again = c.running
	if c.over || c.set || c.running {
		return
	}
	c.untimed.Store(false)
	if len(c.due) == 0 { // all have been closed
		return
	}
	c.set = true
	c.underway.Add(1)
	c.timer = time.AfterFunc(max(comparePeriod, compareShare*c.took), c.run)
}

// run compares the calls of the groups that are due.
func (c *comparison) run() {
	defer c.underway.Done()
	c.mu.Lock()
	due := c.due
	c.due, c.set, c.running = nil, false, true
	c.mu.Unlock()
	began := time.Now()
	for _, g := range due {
		g.due.Store(false) // first: what changes from now on may be missed
		g.compareCalls()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = time.Since(began)
	c.running = false
	if c.again {
		c.schedule()
	}
}

// Stop ends the comparisons of the calls of c's job. None is under way when it returns.
func (c *Comm) Stop() {
	j := &c.g.compare
	j.mu.Lock()
	j.over, j.due = true, nil
	j.untimed.Store(false)
	if j.set && j.timer.Stop() {
		j.set = false
		j.underway.Done()
	}
	j.mu.Unlock()
	j.underway.Wait()
}

// A pause is what a rank waits for: a message of a call of peer, or, for the agreement on a new
// communicator, all ranks.
type pause struct {
	epoch        transport.Epoch
	number, peer int
	own          signature.Word // the rank's call
}

// all is a peer.
const all = -1

// pauses appends what p's rank waits for, each but once in a row.
func (p *port) pauses(list []pause) []pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.Posted.All() {
		number, waits := p.WaitsIn(r, p.rank)
		own, known := p.Made(r.Epoch, number)
		if !waits || !known {
			continue
		}
		w := pause{r.Epoch, number, r.Peer, own}
		if r.Tag == transport.NoTag {
			w.peer = all
		}
		if len(list) == 0 || list[len(list)-1] != w {
			list = append(list, w)
		}
	}
	return list
}

// contradicts returns what p's rank would send in a call, and whether the one that pauses has
// made another.
func (p *port) contradicts(w pause) (e match.Envelope, differs bool) {
	p.mu.Lock()
	theirs, known := p.Made(w.epoch, w.number)
	p.mu.Unlock()
	e.Key = match.Key{Epoch: w.epoch, Source: p.rank, Tag: transport.CollectiveTag(w.number)}
	e.Signature = theirs
	return e, known && !w.own.Fits(theirs)
}

// odd is a rank that waits for one that has made another call.
type odd struct {
	*port
	peer match.Envelope
}

// compareCalls halts the ranks that wait for one that has made another call. All are found before
// one is halted: a halted rank's calls are not compared.
func (g *group) compareCalls() {
	var found []odd
	var list []pause
	forAll := make(map[pause][]*port)
	for i := range g.ports {
		p := &g.ports[i]
		list = p.pauses(list[:0])
		for _, w := range list {
			if w.peer == all {
				forAll[w] = append(forAll[w], p)
			} else if e, differs := g.ports[w.peer].contradicts(w); differs {
				found = append(found, odd{p, e})
			}
		}
	}
	for w, waiting := range forAll { // each of few: all ranks agree on the same
		for i := range g.ports {
			if e, differs := g.ports[i].contradicts(w); differs {
				for _, p := range waiting {
					found = append(found, odd{p, e})
				}
				break
			}
		}
	}
	for i := range found {
		p := found[i].port
		p.mu.Lock()
		cause := p.Contradicts(&found[i].peer)
		p.mu.Unlock()
		if cause != nil {
			p.halt(cause)
		}
	}
}
