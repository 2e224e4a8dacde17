package mpicx

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// proc is one rank of a job: what its communicators share. It knows none of them.
type proc struct {
	// These do not change.

	rank    int
	backend string
	driver  transport.Driver // nil: messages move by themselves
	place   *waiting.Place   // of the first goroutine that waits
	// carryOut does what the ledger asks for. It is called by one goroutine at a time,
	// without mu.
	carryOut func(*ledger.Output)
	// giveUp is called where no message will ever move again. It corrupts every
	// communicator of the rank.
	giveUp func(error)
	leaks  *leaks // nil: nobody asks for them
	// watchers are told what happens to the rank. For them, places call observe; nil if there are none.
	watchers []watcher
	observe  func(...*waiting.Cell) (over func())

	yielder yielder

	// forgetting has a function for each closed communicator on which something is pending,
	// which forgets it if nothing is any more. Only carryOut uses it.
	forgetting []func() (idle bool)

	// dead says that the process of the rank has died. Then each of its goroutines ends at
	// its next operation. A test may abort a dead rank; otherwise dead stays.
	dead atomic.Bool
	// over says that the job is over. Then every operation on its communicators is refused.
	over atomic.Bool
	// returned says that the rank's program has ended.
	returned atomic.Bool
	// parked says that it is a spare which waits to be needed.
	parked atomic.Bool
	// failed says that the rank's program has ended by an error that no peer is told. It is
	// set before the ledger asks for Leave.
	failed bool
	// aborted is why the rank was ended from outside of its program; nil: it was not.
	aborted atomic.Pointer[error]

	// Most operations take their futures from here, which costs no allocation. Peers write
	// to them when they complete something, so they have cache lines of their own.
	_        [64]byte
	statuses slab[future.Promise[Status]]
	untyped  slab[future.Promise[struct{}]]
	_        [64]byte

	// mu protects what follows, and the accounts of the rank's communicators, but for what
	// needs no lock. It is held for moments only.
	mu     sync.Mutex
	ledger ledger.Ledger
	// carrying says that a goroutine carries out what the ledger asks for. Others that
	// feed it leave their outputs to that one.
	carrying bool
	// changed is closed, and then nil, at the next Wake of the ledger. It is nil as long as
	// nobody waits for that.
	changed chan struct{}
}

func newProc(t transport.Comm, o *options) *proc {
	p := &proc{rank: t.Rank(), backend: o.backend}
	p.driver, _ = t.(transport.Driver)
	p.place = p.newPlace()
	p.ledger.Face, p.ledger.Quiet = face, true
	if o.left != nil {
		p.leaks = new(leaks)
	}
	return p
}

// newPlace makes a place.
func (p *proc) newPlace() *waiting.Place {
	place := waiting.NewPlace()
	place.Observe = p.observe
	if p.driver != nil {
		place.Drive = p.awaitBy
	}
	return place
}

// awaitBy is Await, after which the rank knows whether its messages move.
func (p *proc) awaitBy(s waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	woken = p.driver.Await(s, ended)
	if !woken {
		if err := p.driver.Failed(); err != nil {
			p.giveUp(err)
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
	if p.ledger.Watch(n) {
		p.feed(p.ledger.Answer)
	}
	if p.driver != nil {
		p.driver.Watch(n)
	}
}

// enter begins a wait on c; leave, with the same first, ends it.
func (p *proc) enter(c *ledger.Comm) (first bool) {
	first, due := p.ledger.Enter(c)
	if due {
		p.feed(func() { p.ledger.Attend(c) })
	}
	return first
}

func (p *proc) leave(first bool) { p.ledger.Leave(first) }

// How the rank's ledger is driven: what reaches it, and what is done that it asks
// for. What it means is in package ledger.

// happened tells the watchers of an event.
func (p *proc) happened(l timeline.Line) {
	for _, w := range p.watchers {
		w.happened(l)
	}
}

// blocked tells the watchers that this goroutine waits for what op names, until it calls over.
func (p *proc) blocked(op func() string) (over func()) {
	overs := make([]func(), len(p.watchers))
	for i, w := range p.watchers {
		overs[i] = w.blocked(op)
	}
	return func() {
		for _, over := range overs {
			over()
		}
	}
}

// feed gives the ledger an input, and has what comes of it carried out: by this
// goroutine, or by the one of this rank that does so already.
func (p *proc) feed(input func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	input()
	if p.carrying {
		return
	}
	p.carrying = true
	for o := p.ledger.Next(); o != nil; o = p.ledger.Next() {
		if o.Action == ledger.Wake {
			p.change()
			continue
		}
		p.mu.Unlock()
		p.carryOut(o)
		p.mu.Lock()
	}
	p.carrying = false
}

// change has those look again who wait for a verdict, on whichever communicator: an
// error of one may end a wait for that of another. The caller holds mu.
func (p *proc) change() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// forget forgets closed communicators on which nothing is pending any more.
func (p *proc) forget() {
	p.forgetting = slices.DeleteFunc(p.forgetting, func(idle func() bool) bool { return idle() })
}

// die ends this rank: its process has died. Whatever it does on its
// communicators from now on ends its goroutine.
func (p *proc) die() {
	if !p.dead.Swap(true) {
		p.happened(timeline.Line{Event: timeline.Dies})
		p.feed(func() { p.ledger.Die() })
	}
}

// whyGoexit says to peers why a goroutine of the rank left its function by runtime.Goexit.
func (p *proc) whyGoexit() error {
	if err := p.aborted.Load(); err != nil {
		return *err
	}
	return ErrGoexit
}

// exitIfDead ends the goroutine of a rank whose process has died, as far as that
// can be done to a goroutine.
func (p *proc) exitIfDead() {
	if p.dead.Load() && !p.over.Load() {
		runtime.Goexit()
	}
}
