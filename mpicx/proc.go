package mpicx

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// proc is one rank of a job: the state that its communicators share. It knows none of them.
type proc struct {
	// These fields do not change.

	rank   int
	driver transport.Driver // nil: messages move by themselves
	place  *waiting.Place   // of the first goroutine that waits
	// carryOut carries out one output of the ledger. feed calls it, from one goroutine at a
	// time, without mu.
	carryOut func(*ledger.Output)
	// giveUp corrupts every communicator of the rank. It is called when the transport has
	// failed.
	giveUp func(error)
	leaks  observe.Leaks
	keeps  bool // leaks also records messages that were not received: only in tests
	ulfm   bool // the backend is hook.ULFM
	// still is set by a look of the reporter. The next Wait that begins clears it, because the rank
	// moves, and so does the next message of an error channel. It changes.
	still atomic.Bool
	// observer gets the rank's events; nil: nothing does. waits is the Observe of its Places.
	observer *observe.Observer
	waits    func(...*waiting.Cell) (over func())

	yielder yielder
	prompt  prompt

	// forgetting has a function for each closed communicator with pending operations, which
	// forgets the communicator if none is left. Only carryOut uses it.
	forgetting []func() (idle bool)

	// parting are the communicators of part; parts says that there are some. mu protects parting.
	parting []parting
	parts   atomic.Bool

	// dead says that the process of the rank has died. Each goroutine of the rank then ends
	// at its next operation. Only a test that aborts a dead rank resets dead.
	dead atomic.Bool
	// stage holds a stage: how far the rank's program has come.
	stage atomic.Int32
	// aborted is the error with which hook.Rank's Abort has ended the rank; nil: it has not.
	aborted atomic.Pointer[error]

	stall *stall // of the process; set before goroutine
	// goroutine is the one that runs the program, as stacks number it; 0: not known. It changes
	// once, when other goroutines may read it.
	goroutine atomic.Int64

	// Most operations take their futures from these slabs, which costs no allocation. Peers
	// write to the futures when they complete them, so the slabs have their own cache lines.
	_        [64]byte
	statuses slab[future.Promise[Status]]
	untyped  slab[future.Promise[struct{}]]
	// calls is the number of pending collective calls of the program. The call that
	// made it 1 may have ownRun.
	calls  atomic.Int64
	ownRun atomic.Pointer[collectiveRun]
	_      [64]byte

	// mu protects the following fields, and the ledger.Comm of each of the rank's
	// communicators, except for methods that need no lock. It is held briefly.
	mu     sync.Mutex
	ledger ledger.Ledger
	// carrying says that a goroutine carries out the ledger's outputs. It also carries out
	// the outputs that other goroutines cause in the meantime.
	carrying bool
	// changed is closed at the next Wake of the ledger, and then nil. It is nil while no
	// goroutine waits for it.
	changed chan struct{}
}

// A stage says how far a rank's program has come. When a rank's process dies, the stage does not
// change.
type stage = int32

const (
	stageRunning  stage = iota
	stageParked         // the rank is a spare or a fresh rank that no Replace has taken yet
	stageReturned       // the program has returned nil; Run waits for its pending collective calls
	stageEnded          // no collective call is pending, or the peers were told the rank's error
	stageFailed         // an error has ended the rank, the peers were not told: to them it is dead
	stageOver           // the job is over: operations on the rank's communicators are refused
)

func newProc(t transport.Comm, o *options) *proc {
	p := &proc{rank: t.Rank(), ulfm: o.set.Backend == hook.ULFM}
	p.driver, _ = t.(transport.Driver)
	p.place = p.newPlace()
	p.ledger.Face, p.ledger.Quiet = face, true
	p.keeps = o.set.Left != nil
	return p
}

// wrong returns the errors of this rank's own operations that no Wait has reported, or nil. It
// leaves out failures on a communicator that has an error, and the failure of a send to a rank that
// has returned, which depends on which of the two ranks was faster. In tests it also leaves out
// operations that are not collective: mpicxtest reports those when all ranks have returned. Calls
// that the peers have not made are always included.
func (p *proc) wrong() error {
	return p.leaks.Wrong(func(f observe.FailedFuture) bool {
		return f.Unmet || !hasType[*transport.LeftError](f.Err) && !p.hasErrors(f.Comm) && (f.Call || !p.keeps)
	})
}

// locked calls f with mu held and returns its result.
func locked[T any](mu *sync.Mutex, f func() T) T {
	mu.Lock()
	defer mu.Unlock()
	return f()
}

// callEnded notes that a collective call of the program has ended.
func (p *proc) callEnded() {
	p.calls.Add(-1)
	p.lookAgain()
}

// lookAgain wakes settle, if it waits, to check again which calls are pending.
func (p *proc) lookAgain() {
	if p.stage.Load() == stageReturned {
		p.mu.Lock()
		p.change()
		p.mu.Unlock()
	}
}

// hasErrors says whether c has an error, or an error of c is under way. Such an error excuses
// the messages and failed futures that the program has left on c.
func (p *proc) hasErrors(c *ledger.Comm) bool {
	return locked(&p.mu, func() bool { return c.Broken() || c.Disturbed() })
}

func (p *proc) newPlace() *waiting.Place {
	place := waiting.NewPlace()
	place.Observe = p.waits
	if p.driver != nil {
		place.Drive = p.awaitBy
	}
	return place
}

// awaitBy calls the driver's Await. If the transport has failed, it then corrupts every
// communicator of the rank.
func (p *proc) awaitBy(s waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	woken = p.driver.Await(s, ended)
	if !woken {
		if err := p.driver.Failed(); err != nil {
			p.giveUp(err)
		}
	}
	return woken
}

// await blocks until wake or ended is closed. woken says that it was wake. With a driver, await
// also returns false when the transport has failed.
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

// addWaiters adds n to the number of goroutines that wait for something other than a place. While
// there are any, the rank joins every round that it learns of.
func (p *proc) addWaiters(n int) {
	if p.ledger.Watch(n) {
		p.feed(p.ledger.Answer)
	}
	if p.driver != nil {
		p.driver.Watch(n)
	}
}

// enter begins a wait on c. The caller passes first on to leave, which ends the wait.
func (p *proc) enter(c *ledger.Comm) (first bool) {
	first, due := p.ledger.BeginWait(c)
	if due {
		p.feed(func() { p.ledger.Attend(c) })
	}
	return first
}

func (p *proc) leave(first bool) { p.ledger.EndWait(first) }

// ended tells the observer that the rank's program has ended.
func (p *proc) ended(err error) {
	e := observe.Event{Kind: observe.End}
	if err != nil && stopIn(err) == nil {
		e.Text = err.Error()
	}
	p.observer.Happened(e)
}

// feed calls input, which changes the ledger, with mu held, and then carries out the ledger's
// outputs without mu. If another goroutine of the rank is carrying out outputs, it carries out
// these too.
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

// nextChange returns a channel that is closed when the goroutines that wait for a verdict should
// look again. The caller holds mu.
func (p *proc) nextChange() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// change wakes all goroutines that wait for a verdict on any communicator of the rank, because
// an error of one communicator may end the wait for a verdict of another. The caller holds mu.
func (p *proc) change() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// forget forgets the closed communicators that have no pending operation left.
func (p *proc) forget() {
	p.forgetting = slices.DeleteFunc(p.forgetting, func(idle func() bool) bool { return idle() })
}

// parting is a communicator that the rank has given up. The peers that need it there are told as
// soon as it waits, or a scope or its program has ended: then they have the error, if this is
// because of one.
type parting struct {
	tell func() // tells them
	c    *ledger.Comm
}

// part notes that the rank has given up a communicator.
func (p *proc) part(c parting) {
	n := 0
	p.mu.Lock()
	p.parting = append(p.parting, c)
	n = len(p.parting)
	p.mu.Unlock()
	if p.parts.Store(true); n >= mostParting {
		p.partAll()
	}
}

// mostParting is so small that a program that never waits keeps little.
const mostParting = 64

// partAll ends what peers wait for in vain on the communicators that the rank has given up.
func (p *proc) partAll() { p.partBut(nil) }

// partBut is partAll without the communicators that are derived from c, whose error all wait for.
func (p *proc) partBut(c *ledger.Comm) {
	if !p.parts.Load() {
		return
	}
	var all []parting
	p.mu.Lock()
	p.parting = slices.DeleteFunc(p.parting, func(d parting) bool {
		stays := c != nil && d.c.DerivedFrom(c)
		if !stays {
			all = append(all, d)
		}
		return !stays
	})
	p.parts.Store(len(p.parting) > 0)
	p.mu.Unlock()
	for _, d := range all {
		d.tell()
	}
}

// die ends this rank, whose process has died. From now on every operation on its communicators
// ends the goroutine that calls it.
func (p *proc) die() {
	if !p.dead.Swap(true) {
		p.observer.Happened(observe.Event{Kind: observe.Dies})
		p.feed(func() { p.ledger.Die() })
	}
}

// whyGoexit returns the error for a function of the rank that runtime.Goexit has ended.
func (p *proc) whyGoexit() error {
	if err := p.aborted.Load(); err != nil {
		return *err
	}
	return ErrGoexit
}

// exitIfDead ends the calling goroutine if the process of its rank has died. A goroutine can't
// be killed, so it checks at each operation.
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
	used   atomic.Int32 // number of calls of get, which may exceed the number of values
	values []T          // get hands out the first used of them
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
// end the wait is often ready to run. After a yield the waiting goroutine then need not block and
// be woken, which costs more than the rest of a short message. But a goroutine that yields is
// queued behind all that are ready, while a goroutine that is woken runs before them. If other
// goroutines keep the cores busy, so that yields are slow, the yielder leaves yields out: 256 after
// the first slow yield, and twice as many after each further one, up to 65536.
type yielder struct {
	// toLeaveOut is the number of yields that are still to be left out. Each call of yield lowers
	// it by one; below 0, it is minus the number of yields since the last one that was left out.
	toLeaveOut atomic.Int32
	leftOut    atomic.Int32 // how many yields the last slow one has had left out; each fast one halves it
}

const (
	slowYield   = 20 * time.Microsecond // on cores that only the ranks use, a yield takes less
	timedYields = 8                     // one yield in 8 is timed: reading the clock takes half as long as a yield
)

var start = time.Now()

// inBubble says whether the caller is in a bubble of package testing/synctest. What comes from
// outside must not touch it: signals, and cleanups.
func inBubble() bool { return time.Now().Before(start) }

// Yield lets other goroutines run, unless that takes long.
func (y *yielder) Yield() {
	switch left := y.toLeaveOut.Add(-1); {
	case left > 0:
	case left%timedYields != 0:
		runtime.Gosched()
	default:
		began := time.Since(start)
		runtime.Gosched()
		y.took(time.Since(start) - began)
	}
}

// took notes that a yield took d, and decides how many of the next ones are left out.
func (y *yielder) took(d time.Duration) {
	if d <= slowYield {
		y.leftOut.Store(y.leftOut.Load() / 2)
		return
	}
	out := min(max(2*y.leftOut.Load(), 1<<8), 1<<16)
	y.leftOut.Store(out)
	y.toLeaveOut.Store(out)
}

// prompt predicts whether the program waits for a receive as soon as it has begun it, and whether
// the message comes at once when other ranks run. Then the receive lets them run before it is
// posted: when the message has come, it needs no future of its own, and nobody has to be woken. In
// the same way, processes look for the parts of others in a collective call.
type prompt struct {
	latest atomic.Uintptr // the Cell of an operation that was posted, if nothing has followed it; only compared
	likely atomic.Bool    // so it was with the last receive that was posted
}

// begins notes that the program begins an operation.
func (p *prompt) begins() {
	if p.latest.Load() != 0 {
		p.latest.Store(0)
		p.learn(false)
	}
}

// posted notes that a receive or a collective call has been posted.
func (p *prompt) posted(cell *waiting.Cell) { p.latest.Store(uintptr(unsafe.Pointer(cell))) }

// isLatest says whether nothing has followed an operation. It is asked once.
func (p *prompt) isLatest(cell *waiting.Cell) bool {
	return p.latest.Load() == uintptr(unsafe.Pointer(cell)) && p.latest.Swap(0) != 0
}

func (p *prompt) learn(likely bool) {
	if p.likely.Load() != likely {
		p.likely.Store(likely)
	}
}
