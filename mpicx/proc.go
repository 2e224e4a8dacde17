package mpicx

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// proc is a rank of the job: what its communicators share. Above all it knows
// whether the rank is inside an operation. While it is, it joins the resolution
// of errors on any of its communicators at once, so that no rank hangs in one
// while its peers resolve an error of another (design rule D2). While it
// computes, it joins at its next operation, so that an error which it raises
// before is resolved with the others (P2).
type proc struct {
	rank    int
	backend string
	log     *slog.Logger     // nil: silent
	driver  transport.Driver // nil: messages move by themselves
	world   *Comm

	// inside is the communicator that a goroutine of the rank waits on, in place;
	// nil: none does.
	inside atomic.Pointer[Comm]
	place  *future.Place
	// extra counts what else keeps the rank attending: further goroutines that
	// wait, channels that are watched, and that the rank has left.
	extra atomic.Int32

	dead    atomic.Bool // mpicxtest.Die ended it, or its transport did
	leaving atomic.Bool // the program has ended
	failed  bool        // by an error that no peer is told

	// What makes most operations cost no allocation, on cache lines of its own: peers
	// write to it when they complete something.
	_            [64]byte
	statuses     slab[future.Promise[Status]]
	untyped      slab[future.Promise[struct{}]]
	idleReceives freeList[receiveOp]
	idleRuns     freeList[collectiveRun]
	_            [64]byte

	mu       sync.Mutex
	changed  chan struct{} // closed at the next verdict on any communicator; nil: nobody waits
	unjoined []debt
	owing    atomic.Int32
}

// A debt is a round that is noticed, but not joined.
type debt struct {
	comm  *Comm
	round uint64
}

func newProc(t transport.Comm, o *options) *proc {
	p := &proc{rank: t.Rank(), backend: o.backend, log: o.log}
	p.driver, _ = t.(transport.Driver)
	p.place = p.newPlace()
	return p
}

// newPlace makes a place to wait in.
func (p *proc) newPlace() *future.Place {
	place := future.NewPlace()
	if p.driver != nil {
		place.Await = p.drive
	}
	return place
}

// drive is how a place waits.
func (p *proc) drive(place *future.Place, ended <-chan struct{}) (woken bool) {
	return p.awaitBy(place, ended)
}

// awaitBy is Await, after which the rank knows whether its messages move.
func (p *proc) awaitBy(s transport.Sleeper, ended <-chan struct{}) (woken bool) {
	woken = p.driver.Await(s, ended)
	if !woken {
		if err := p.driver.Failed(); err != nil {
			p.world.giveUp(err)
			p.change()
		}
	}
	return woken
}

// await blocks until wake, or ended, is closed; it says which.
func (p *proc) await(wake, ended <-chan struct{}) (woken bool) {
	if p.driver != nil {
		return p.awaitBy(closed(wake), ended)
	}
	select {
	case <-wake:
		return true
	case <-ended:
		return false
	}
}

// closed is a channel that is waited for until it is.
type closed <-chan struct{}

func (c closed) Woken() bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (c closed) Sleep() <-chan struct{} { return c }
func (c closed) Rise()                  {}

// watch counts the goroutines that wait for what is not a place.
func (p *proc) watch(n int) {
	p.extra.Add(int32(n))
	if p.driver != nil {
		p.driver.Watch(n)
	}
}

// enter begins an operation on c that may block; leave ends it.
func (p *proc) enter(c *Comm) *future.Place {
	place := p.place
	if !p.inside.CompareAndSwap(nil, c) {
		place = nil
		p.extra.Add(1)
	}
	if p.owing.Load() > 0 && c.unreported() == nil {
		p.join()
	}
	return place
}

func (p *proc) leave(place *future.Place) {
	if place == nil {
		p.extra.Add(-1)
	} else {
		p.inside.Store(nil)
	}
}

// attending says whether the rank is inside an operation. It is not if that is
// about to end with an error: its program will have been told of that one, but
// knows of no later one, and what it raises next belongs with that (P2).
func (p *proc) attending() bool {
	if p.extra.Load() > 0 {
		return true
	}
	c := p.inside.Load()
	return c != nil && c.unreported() == nil
}

// attend keeps the rank attending for good: it has left.
func (p *proc) attend() {
	p.extra.Add(1)
	p.join()
}

// nextChange returns a channel that is closed when there is a verdict to look for,
// on whichever communicator: an error of one may end a wait for that of another.
func (p *proc) nextChange() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

func (p *proc) change() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// owes notes that c has a round that this rank has to join.
func (p *proc) owes(c *Comm, round uint64) {
	p.mu.Lock()
	p.unjoined = append(p.unjoined, debt{c, round})
	p.owing.Store(int32(len(p.unjoined)))
	p.mu.Unlock()
	if p.attending() {
		p.join()
	}
}

// paid notes that the rank has joined c's round.
func (p *proc) paid(c *Comm) {
	p.mu.Lock()
	p.unjoined = slices.DeleteFunc(p.unjoined, func(d debt) bool { return d.comm == c })
	p.owing.Store(int32(len(p.unjoined)))
	p.mu.Unlock()
}

// join joins what the rank owes.
func (p *proc) join() {
	if p.owing.Load() == 0 {
		return
	}
	p.mu.Lock()
	todo := slices.Clone(p.unjoined)
	p.mu.Unlock()
	for _, d := range todo {
		d.comm.join(d.round)
	}
}
