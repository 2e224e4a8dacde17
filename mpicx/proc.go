package mpicx

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// proc is one rank of a job: the state that its communicators share. It knows none of them.
type proc struct {
	// These fields do not change.

	rank    int
	backend string
	driver  transport.Driver // nil: messages move by themselves
	place   *waiting.Place   // of the first goroutine that waits
	// carryOut carries out an output of the ledger. It is called by one goroutine at a time,
	// without mu.
	carryOut func(*ledger.Output)
	// giveUp corrupts every communicator of the rank. It is called when the transport has
	// failed.
	giveUp func(error)
	leaks  leaks
	keeps  bool // leaks has messages, too
	// watchers receive the rank's events. Places call observe for them. Both are nil if there
	// are no watchers.
	watchers []watcher
	observe  func(...*waiting.Cell) (over func())

	yielder yielder

	// forgetting has a function for each closed communicator with pending operations, which
	// forgets the communicator if none is left. Only carryOut uses it.
	forgetting []func() (idle bool)

	// dead says that the process of the rank has died. Each of its goroutines then ends at
	// its next operation. Only a test that aborts a dead rank resets dead.
	dead atomic.Bool
	// stage is how far the rank's program has come: a stage.
	stage atomic.Int32
	// aborted is why the rank was ended from outside of its program; nil: it was not.
	aborted atomic.Pointer[error]

	// Most operations take their futures from these slabs, which costs no allocation. Peers
	// write to the futures when they complete them, so the slabs have their own cache lines.
	_        [64]byte
	statuses slab[future.Promise[Status]]
	untyped  slab[future.Promise[struct{}]]
	// calls is the number of collective calls that the program has begun and that have not ended. The call that
	// made it 1 may have ownRun.
	calls  atomic.Int64
	ownRun atomic.Pointer[collectiveRun]
	_      [64]byte

	// mu protects the following fields, and the ledger.Comm of each of the rank's
	// communicators, except for methods that need no lock. It is held briefly.
	mu     sync.Mutex
	ledger ledger.Ledger
	// carrying says that a goroutine carries out the ledger's outputs. Other goroutines that
	// feed the ledger leave their outputs to it.
	carrying bool
	// changed is closed at the next Wake of the ledger, and then nil. It is nil while no
	// goroutine waits for it.
	changed chan struct{}
}

// A watcher receives the events of one rank. WithLogger, WithRuntimeTrace and WithTimeline each ask
// for one. Its methods are called on any goroutine, and must not wait for other ranks.
type watcher interface {
	// heard receives the events of the rank's ledger, in order.
	heard(*ledger.Event)
	// happened receives all other events.
	happened(timeline.Line)
	// blocked is called by a goroutine that is about to wait in the operation that op names. The
	// goroutine calls over when it stops waiting.
	blocked(op func() string) (over func())
}

// A stage is how far a rank's program has come. A rank whose process has died keeps the stage that it had.
type stage = int32

const (
	stageRunning  stage = iota
	stageParked         // the rank is a spare or a fresh rank, and was not taken yet
	stageReturned       // the program has returned nil, and waits for the collective calls that it has begun
	stageEnded          // it has ended: no call is under way, or all peers are told of an error
	stageFailed         // it has ended by an error that no peer is told: the rank is dead for them
	stageOver           // the job is over: every operation on its communicators is refused
)

func newProc(t transport.Comm, o *options) *proc {
	p := &proc{rank: t.Rank(), backend: o.set.Backend}
	p.driver, _ = t.(transport.Driver)
	p.place = p.newPlace()
	p.ledger.Face, p.ledger.Quiet = face, true
	p.keeps = o.set.Left != nil
	return p
}

// wrong returns what this rank's own operations have failed with, if nobody was told. A send to a rank that has
// returned may depend on which of the two was faster, and is not wrong; nor is what an error excuses. In a test,
// mpicxtest says what other operations than collective ones have failed with, when all ranks have returned.
func (p *proc) wrong() error {
	return p.leaks.wrong(func(f failedFuture) bool {
		return f.unmet || !is[*transport.LeftError](f.err) && !p.hasErrors(f.comm) && (f.call || !p.keeps)
	})
}

// locked returns what f returns under the lock of the rank's ledger.
func locked[T any](p *proc, f func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f()
}

// callEnded notes that a collective call has ended.
func (p *proc) callEnded() {
	p.calls.Add(-1)
	p.lookAgain()
}

// lookAgain makes a program that has returned look again at its calls.
func (p *proc) lookAgain() {
	if p.stage.Load() == stageReturned {
		p.mu.Lock()
		p.change()
		p.mu.Unlock()
	}
}

// hasErrors says whether c has an error, or one is under way, that excuses what the program has left on c.
func (p *proc) hasErrors(c *ledger.Comm) bool {
	return locked(p, func() bool { return c.Broken() || c.Disturbed() })
}

func (p *proc) newPlace() *waiting.Place {
	place := waiting.NewPlace()
	place.Observe = p.observe
	if p.driver != nil {
		place.Drive = p.awaitBy
	}
	return place
}

// awaitBy is the driver's Await. Afterwards the rank knows whether the transport has failed.
func (p *proc) awaitBy(s waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	woken = p.driver.Await(s, ended)
	if !woken {
		if err := p.driver.Failed(); err != nil {
			p.giveUp(err)
		}
	}
	return woken
}

// await blocks until wake or ended is closed, and says which.
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

// closed is a waiting.Sleeper that sleeps until the channel is closed.
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

// watch counts the goroutines that wait for anything but a place.
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
	first, due := p.ledger.BeginWait(c)
	if due {
		p.feed(func() { p.ledger.Attend(c) })
	}
	return first
}

func (p *proc) leave(first bool) { p.ledger.EndWait(first) }

// happened tells the watchers of an event.
func (p *proc) happened(l timeline.Line) {
	for _, w := range p.watchers {
		w.happened(l)
	}
}

// ended tells the watchers that the rank's program has ended.
func (p *proc) ended(err error) {
	l := timeline.Line{Event: timeline.End}
	if err != nil {
		l.Text = err.Error()
	}
	p.happened(l)
}

// blocked tells the watchers that this goroutine waits, in the operation that op names, until
// it calls over.
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

// feed gives the ledger an input. The outputs are carried out by this goroutine, or by another
// goroutine of this rank that is carrying out outputs already.
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

// nextChange returns a channel that is closed when the goroutines that wait for a verdict should look
// again. The caller holds mu.
func (p *proc) nextChange() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// change wakes all goroutines that wait for a verdict, to look again. An error of one
// communicator may end the wait for a verdict of another. The caller holds mu.
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

// die ends this rank, whose process has died. From now on every operation on its communicators
// ends the goroutine that calls it.
func (p *proc) die() {
	if !p.dead.Swap(true) {
		p.happened(timeline.Line{Event: timeline.Dies})
		p.feed(func() { p.ledger.Die() })
	}
}

// whyGoexit returns the error of a function of the rank that was left by runtime.Goexit.
func (p *proc) whyGoexit() error {
	if err := p.aborted.Load(); err != nil {
		return *err
	}
	return ErrGoexit
}

// exitIfDead ends the calling goroutine if the process of its rank has died. This is the
// nearest that a goroutine comes to being killed.
func (p *proc) exitIfDead() {
	if p.dead.Load() && p.stage.Load() != stageOver {
		runtime.Goexit()
	}
}

// slab hands out values of T from chunks, so most operations need no allocation. A chunk is freed
// when none of its values is in use.
type slab[T any] struct {
	chunk atomic.Pointer[chunk[T]]
}

type chunk[T any] struct {
	used   atomic.Int32
	values []T
}

// slabChunk is large enough to make allocations rare, and small enough for a hundred thousand ranks
// with a chunk each.
const slabChunk = 16

func (s *slab[T]) get() *T {
	for {
		c := s.chunk.Load()
		size := 1
		if c != nil {
			if i := int(c.used.Add(1)) - 1; i < len(c.values) {
				return &c.values[i]
			}
			size = min(2*len(c.values), slabChunk)
		}
		s.chunk.CompareAndSwap(c, &chunk[T]{values: make([]T, size)})
	}
}

// A yielder lets other goroutines run before a goroutine of a rank blocks. The goroutine that will
// end the wait is often ready to run. The waiting one then need not block and be woken, which costs
// more than the rest of a short message. But a goroutine that yields is queued behind all that are
// ready, and one that is woken is ahead of them. If other goroutines keep the cores busy, yields are
// therefore left out, more of them each time.
type yielder struct {
	left    atomic.Int32 // yields to leave out before the next; below 0, minus the number of yields since
	leftOut atomic.Int32 // how many were left out the last time
}

const (
	slowYield   = 20 * time.Microsecond // on cores that only the ranks use, a yield takes less
	timedYields = 8                     // one yield in 8 is timed: reading the clock takes half as long as a yield
)

var start = time.Now()

func (y *yielder) yield() {
	switch left := y.left.Add(-1); {
	case left > 0:
	case left%timedYields != 0:
		runtime.Gosched()
	default:
		began := time.Since(start)
		runtime.Gosched()
		y.took(time.Since(start) - began)
	}
}

// took notes how long a yield took.
func (y *yielder) took(d time.Duration) {
	if d <= slowYield {
		y.leftOut.Store(y.leftOut.Load() / 2)
		return
	}
	out := min(max(2*y.leftOut.Load(), 1<<8), 1<<16)
	y.leftOut.Store(out)
	y.left.Store(out)
}
