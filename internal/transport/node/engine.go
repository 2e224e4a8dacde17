package node

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// engine is this process's part in the job: the state that its communicators share. All calls of the
// fabric are made with mu held.
type engine struct {
	fabric     Fabric
	mu         sync.Mutex
	wanted     atomic.Int32 // number of goroutines that wait for mu to begin an operation
	name       string       // of the transport
	rank, size int
	core       core
	far        int     // bytes of the longest message to another machine that is sent in a packet
	machines   []int   // the number of each process's machine
	later      int     // the number of processes, the last ones, that may be started later
	reserve    Reserve // not nil if there are any
	node
	turns       uint // number of calls of move
	comms       map[contextID]*comm
	latest      *comm                     // the receiver of the last packet; nil: look in comms
	arrival     arrival                   // the packet
	closed      [2]map[contextID]struct{} // the latest, and some before
	early       map[contextID][]*arrival  // for communicators that this rank has not made yet
	transfers   map[uint64]*transfer      // that the fabric has
	coming      map[uint32]*transfer      // that come through a pipe, by tag
	pulls       []pull                    // of coming, those that are being read
	offers      map[uint64]*transfer      // of this process, not accepted so far
	leads       []leads                   // by process
	discarded   func(*arrival)            // received
	offered     int                       // bytes of the longest of them so far
	lastID      uint64
	cookie      *cookie
	tags        uint32
	tagged      map[uint32]bool // those of the fabric's tags that transfers to this process have
	err         error           // the fabric's error; nothing works after it
	over        atomic.Bool     // err is set
	mortal      bool
	dead        []bool // processes that have died
	losses      int
	lookForEnds func() // of watched, a system call; nil: the fabric does it
	heart       *heart // nil: the job has one machine, or its processes are not mortal
	families    map[contextID]*liveness

	// news are to be told when mu is free, in order, by one goroutine at a time: what follows the end of a
	// request may free buffers that this end still uses (P4).
	news    []news
	told    []news       // memory for reuse
	telling atomic.Int32 // what it tells; without mu it changes only from toldEnd to toldNothing

	driving driving
	often   int           // turns after which it lets other goroutines have its core: a thread may wake up for that
	watched atomic.Int32  // goroutines that wait in other ways
	dozing  atomic.Bool   // nothing is expected for long
	nap     time.Duration // the period meanwhile
	attend  chan struct{} // there is one more of watched, or one process less
	stop    chan struct{}
	idle    sync.WaitGroup // the goroutine that makes progress when nobody waits
}

func newEngine(fabric Fabric, mortal bool) *engine {
	e := &engine{
		fabric: fabric, mortal: mortal, comms: make(map[contextID]*comm), closed: [2]map[contextID]struct{}{{}, {}}, early: make(map[contextID][]*arrival),
		transfers: make(map[uint64]*transfer), coming: make(map[uint32]*transfer), offers: make(map[uint64]*transfer), tagged: make(map[uint32]bool), families: make(map[contextID]*liveness), nap: longNap,
		cookie: newCookie(), driving: driving{free: make(chan struct{}, 1)}, attend: make(chan struct{}, 1), stop: make(chan struct{}), often: 256,
	}
	if runtime.GOMAXPROCS(0) == 1 {
		e.often = 4
	}
	e.discarded = e.received
	if w, ok := fabric.(*watched); ok {
		w.wake, e.lookForEnds = e.wake, w.look
	}
	return e
}

// news is a request that has ended, a message or a death for a listener, or a call for a fabric.
type news struct {
	request *transport.Request
	to      transport.Listener
	from    int
	payload []byte
	died    bool
	call    func() // of the fabric
}

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

// findDeaths asks the fabric for deaths, and takes the packets that the dead had sent before.
func (e *engine) findDeaths() {
	dead, err := e.fabric.Failed()
	for n, last := 0, false; err == nil && e.mortal && !last && n < lastPackets; n++ {
		moved, died := e.fabric.Poll((*Sink)(e), max(mixed, e.size))
		if died {
			dead, err = e.fabric.Failed()
		}
		last = !moved && !died
	}
	if err != nil {
		e.fail(err)
		return
	}
	for _, p := range dead {
		switch {
		case !e.mortal:
			e.fail(&transport.JobEndedError{Process: p})
			return
		case !e.dead[p] && e.err == nil:
			e.takeDeath(p)
		}
	}
	for h := e.heart; h != nil && len(h.declared) > 0; {
		p := h.declared[0]
		h.declared = h.declared[1:]
		if !e.dead[p] && e.err == nil {
			e.takeDeath(p)
			h.condemn(p)
		}
	}
}

// takeDeath notes a death, and tells it to all listeners.
func (e *engine) takeDeath(process int) {
	e.lastOf(process)
	e.died(process)
	if e.heart != nil {
		e.heart.died(process)
	}
}

// What the goroutine that tells news tells.
const (
	toldNothing = iota // there is none
	toldEnd            // the end of one request; nothing has followed it
	toldAll            // all news, those that follow too
)

// unlock unlocks mu, and tells the news, unless another goroutine does.
func (e *engine) unlock() {
	if len(e.news) == 0 || e.telling.Load() == toldAll || e.telling.CompareAndSwap(toldEnd, toldAll) {
		e.mu.Unlock()
		return
	}
	if n := e.news[0]; len(e.news) == 1 && n.request != nil { // most often: without locking mu again
		e.news[0], e.news = news{}, e.news[:0]
		e.telling.Store(toldEnd)
		e.mu.Unlock()
		e.tellEnd(n.request)
		return
	}
	e.telling.Store(toldAll)
	e.tell()
}

// tellEnd tells the end of a request, and then what has followed.
func (e *engine) tellEnd(r *transport.Request) {
	defer func() {
		if !e.telling.CompareAndSwap(toldEnd, toldNothing) {
			e.mu.Lock()
			e.tell()
		}
	}()
	r.Done.Completed(r)
}

// tell tells the news. If a function that it calls ends the goroutine, the rest is told nevertheless. The
// caller holds mu; tell unlocks it.
func (e *engine) tell() {
	var all []news
	next := 0
	defer func() {
		if next >= 0 {
			e.mu.Lock()
			e.news = slices.Concat(all[next:], e.news)
			e.tell()
		}
	}()
	for len(e.news) > 0 {
		all, next = e.news, 0
		e.news, e.told = e.told[:0], nil
		e.mu.Unlock()
		for next < len(all) {
			n := &all[next]
			next++
			switch {
			case n.request != nil:
				n.request.Done.Completed(n.request)
			case n.call != nil:
				n.call()
			case n.died:
				n.to.Died(n.from)
			default:
				n.to.Take(n.from, n.payload)
			}
		}
		clear(all)
		e.mu.Lock()
		e.told = all
	}
	next = -1
	e.telling.Store(toldNothing)
	e.mu.Unlock()
}

// end adds the end of r to the news, unless Start is beginning it.
func (e *engine) end(r *transport.Request, err error) {
	r.Where, r.Err = nil, err
	if r.Beginning {
		r.Ended = true
		return
	}
	e.news = append(e.news, news{request: r})
}

// endProbe adds the end of a probe that has found its message to the news. An Mprobe keeps the message.
func (e *engine) endProbe(r *transport.Request) {
	where := r.Where
	e.end(r, nil)
	r.Where = where
}

// endAll adds the ends of all requests of a list to the news.
func (e *engine) endAll(list *transport.Request, err error) {
	for r := range match.List(list) {
		e.end(r, err)
	}
}

// garbage ends everything after bytes that no process sends. It is unknown which process has written them,
// because each process of a machine can write to the shared memory. So this process does not declare the
// sender dead, which others see alive: it fails itself. If
// processes are mortal it dies of that, and the others continue without it (see Job.End).
func (e *engine) garbage(source int, err error) {
	e.fail(fmt.Errorf("garbage from process %d: %w", source, err))
}

// take takes a packet. Another process may still change its bytes. It returns an error if no process sends
// such a packet.
func (e *engine) take(source int, packet []byte) error {
	a := &e.arrival // until it is kept
	rest, err := a.header.decode(packet)
	if e.heart != nil && source == e.heart.emitter {
		e.heart.heard = true
	}
	switch h := &a.header; {
	case err != nil:
		return err
	case e.dead[source] && h.kind < beat: // it may live, but has been declared dead
		return nil
	case h.kind > offer:
		return e.takeNotice(source, *h, rest)
	}
	a.source, a.bytes = source, rest
	c := e.latest
	to := a.header.to
	if c == nil || c.context != to {
		c = e.comms[to]
	}
	if c != nil {
		e.latest = c
		return c.deliver(a)
	}
	if e.isClosed(to) {
		e.received(a)
	} else {
		e.early[to] = append(e.early[to], a.kept())
	}
	return nil
}

// takeNotice is take for a packet that is no message.
func (e *engine) takeNotice(source int, h header, rest []byte) error {
	switch {
	case h.kind >= beat:
		return e.heart.take(source, h, rest)
	case h.kind == accept || h.kind == pulled:
		return e.accepted(source, h)
	case h.kind == part:
		return e.takePart(source, h)
	case h.kind == withdrawn:
		e.forget(source, h)
		return nil
	case h.kind == credit:
		return e.takeCredit(source, h)
	case h.kind == reminder:
		return e.takeReminder(source, h)
	}
	return e.takeLiveness(source, h)
}

// remembered is the number of closed communicators that are remembered; at most twice as many are. Nothing is
// under way to earlier ones.
const remembered = 1 << 15

// close makes the engine drop packets that still come for a communicator.
func (e *engine) close(c contextID) {
	delete(e.comms, c)
	e.latest = nil
	if len(e.closed[0]) == remembered {
		e.closed = [2]map[contextID]struct{}{{}, e.closed[0]}
	}
	e.closed[0][c] = struct{}{}
}

func (e *engine) isClosed(c contextID) bool {
	_, gone := e.closed[0][c]
	if !gone {
		_, gone = e.closed[1][c]
	}
	return gone
}

// sendPacket sends a packet to a process.
func (e *engine) sendPacket(to int, h *header, rest []byte) {
	if o := e.out[to]; o != nil {
		e.sendNear(o, h, rest)
	} else if err := e.fabric.Send(to, *h, rest); err != nil {
		e.fail(err)
	}
}

// fail ends everything with an error of the fabric.
func (e *engine) fail(err error) {
	if e.err != nil {
		return
	}
	e.err = err
	e.over.Store(true)
	for _, c := range e.comms {
		c.tellFailure()
	}
	for _, c := range e.comms {
		e.endAll(c.TakeIf(func(*transport.Request) bool { return true }), err)
		clear(c.moving)
	}
	for _, t := range e.offers {
		e.abandon(t, err)
	}
	for _, t := range e.coming {
		e.abandon(t, err)
	}
	for _, t := range e.transfers { // they stay pinned, because the fabric may still use them
		e.abandon(t, err)
	}
	for _, o := range e.out {
		if o != nil {
			for _, s := range o.remainders {
				e.abandon(s.transfer, err)
			}
			e.lagging -= len(o.remainders)
			o.remainders = nil
		}
	}
	clear(e.offers)
	clear(e.coming)
}

func (c *comm) tellFailure() {
	if told, err := c.onFailure, c.e.err; told != nil {
		c.e.news = append(c.e.news, news{call: func() { told(err) }})
	}
}

func (e *engine) abandon(t *transfer, err error) {
	if t.request != nil && !t.over {
		e.end(t.request, err)
	}
	t.over = true
}
