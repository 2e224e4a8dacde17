package node

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
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
	turns   uint // number of calls of move
	comms   map[contextID]*comm
	latest  *comm                     // the receiver of the last packet; nil: look in comms
	arrival arrival                   // the packet
	closed  [2]map[contextID]struct{} // the latest, and some before
	early   map[contextID][]*arrival  // for communicators that this rank has not made yet
	rendezvous
	leads       []leads        // by process
	discarded   func(*arrival) // received
	err         error          // the fabric's error; nothing works after it
	over        atomic.Bool    // err is set
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
		fabric: fabric, mortal: mortal, rendezvous: newRendezvous(),
		comms: make(map[contextID]*comm), closed: [2]map[contextID]struct{}{{}, {}}, early: make(map[contextID][]*arrival), families: make(map[contextID]*liveness),
		driving: driving{free: make(chan struct{}, 1)}, often: 256, nap: longNap, attend: make(chan struct{}, 1), stop: make(chan struct{}),
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
