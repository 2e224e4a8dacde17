package mpicx

import (
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// proc is a rank of the job: what its communicators share.
type proc struct {
	rank    int
	backend string
	log     *slog.Logger     // nil: silent
	driver  transport.Driver // nil: messages move by themselves
	world   *Comm

	place   *waiting.Place // of the first goroutine that waits
	yielder yielder

	dead   atomic.Bool // its process has died
	over   atomic.Bool // the job is: its communicators are of no use
	failed bool        // by an error that no peer is told

	// What makes most operations cost no allocation, on cache lines of its own: peers
	// write to it when they complete something.
	_            [64]byte
	statuses     slab[future.Promise[Status]]
	untyped      slab[future.Promise[struct{}]]
	idleReceives freeList[receiveOp]
	idleRuns     freeList[collectiveRun]
	_            [64]byte

	// mu protects the ledger, but for what needs no lock, and the rest. It
	// is held for moments only: nothing is called from under it.
	mu       sync.Mutex
	ledger   ledger.Ledger
	carrying bool          // a goroutine carries out what the ledger asks for
	changed  chan struct{} // closed at the next Wake of the ledger; nil: nobody waits
}

func newProc(t transport.Comm, o *options) *proc {
	p := &proc{rank: t.Rank(), backend: o.backend, log: o.log}
	p.driver, _ = t.(transport.Driver)
	p.place = p.newPlace()
	p.ledger.Face, p.ledger.Quiet = face, p.log == nil
	return p
}

// newPlace makes a place to wait in.
func (p *proc) newPlace() *waiting.Place {
	place := waiting.NewPlace()
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
			p.world.giveUp(err)
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
func (p *proc) enter(c *Comm) (first bool) {
	c.notInReduction("waits", "for an operation")
	first, due := p.ledger.Enter(&c.ledger)
	if due {
		p.feed(func() { p.ledger.Attend(&c.ledger) })
	}
	return first
}

func (p *proc) leave(first bool) { p.ledger.Leave(first) }

// change has those look again who wait for a verdict, on whichever communicator: an
// error of one may end a wait for that of another. The caller holds mu.
func (p *proc) change() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// finish says that the job is over. What uses a communicator of this rank from now on,
// or still waits for an operation, ends with an error: by then nobody answers.
func (p *proc) finish() {
	p.over.Store(true)
	p.feed(p.ledger.End)
	if p.driver != nil { // peers in other processes may still receive what this rank sent
		return
	}
	for _, c := range p.world.family() {
		err := jobOver(useOp, c)
		c.t.Revoke(err)
		if c.mitigator != nil {
			c.mitigator.Abandon(err)
		}
	}
}

// exitIfDead ends the goroutine of a rank whose process has died, as far as that
// can be done to a goroutine.
func (p *proc) exitIfDead() {
	if p.dead.Load() && !p.over.Load() {
		runtime.Goexit()
	}
}
