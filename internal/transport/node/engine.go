package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// engine is this process's part in the job: the state that its communicators share. mu protects it,
// except for the fields that say otherwise and those that do not change after Begin. All calls of
// the fabric are made with mu held.
type engine struct {
	// No function of the program is called while mu is held: see callbacks.
	fabric Fabric
	mu     sync.Mutex
	place
	mover
	callbacks
	node
	comms map[contextID]*comm // those that this rank has made and not closed
	// latest is the communicator of the last message, which is probably that of the next one too.
	// It is nil, or one of comms.
	latest *comm
	// arrival is the packet that take is taking. It is valid during that call only: see kept.
	arrival arrival
	// closed are the communicators closed recently, and the ones before: see remembered.
	closed [2]map[contextID]struct{}
	// early are messages for communicators that this rank has not made yet.
	early map[contextID][]*arrival
	rendezvous
	leads     []leads        // by process
	discarded func(*arrival) // the method received, made once because each use allocates
	// err is the error after which nothing works: of the fabric, or of this process. Once set, it
	// does not change.
	err    error
	over   atomic.Bool // err is set; read without mu
	mortal bool        // the job survives deaths of its processes
	dead   []bool      // by process: whether it has died
	heart  *heart      // nil: see heart
	// families are the livenesses of the programs, by the context of their first communicator.
	families map[contextID]*liveness
}

// place says where this process is in the job. It does not change after Begin.
type place struct {
	name       string // of the transport
	rank, size int
	far        int     // length of the longest eager message to another machine
	machines   []int   // for each process the number of its machine
	near       bool    // whatever this process waits for rings its bell
	later      int     // the last later processes may be started during the job
	reserve    Reserve // the fabric, if later > 0
	reason     func(ctx context.Context, process int) string
}

func newEngine(fabric Fabric, mortal bool) *engine {
	e := &engine{
		fabric: fabric, mortal: mortal,
		comms: make(map[contextID]*comm), closed: [2]map[contextID]struct{}{{}, {}}, early: make(map[contextID][]*arrival), families: make(map[contextID]*liveness),
		rendezvous: rendezvous{
			offers: make(map[uint64]*transfer), transfers: make(map[uint64]*transfer),
			tagged: make(map[uint32]bool), coming: make(map[uint32]*transfer), cookie: new(cookie),
		},
		mover: mover{
			driving: driving{free: make(chan struct{}, 1)}, often: 256, shortest: remindPeriod, longest: time.Second,
			attend: make(chan struct{}, 1), stop: make(chan struct{}),
		},
	}
	_, _ = rand.Read(e.cookie[:]) // it never fails
	// With one thread, the other goroutines of the program run only if this one lets them.
	if runtime.GOMAXPROCS(0) == 1 {
		e.often = 4
	}
	e.discarded = e.received
	return e
}

// garbage makes this process fail, because it has read bytes that no process sends. It is unknown
// which process has written them, because each process of a machine can write to the shared memory.
// So this process does not declare the apparent sender dead, which others see alive. It fails
// itself. If processes are mortal it then dies, and the others continue without it (see Job.End).
// After it the caller returns as usual: e.err stops whatever would follow.
func (e *engine) garbage(source int, err error) {
	e.fail(fmt.Errorf("garbage from process %d: %w", source, err))
}

// take handles a packet. Its sender may be faulty, and change the bytes while take reads them. take
// returns an error if no process sends such a packet.
func (e *engine) take(source int, packet []byte) error {
	a := &e.arrival // valid until take returns; kept copies it
	// decode copies the fields of the header, so they do not change between their check and their
	// use. The rest is still in memory that the sender can write to.
	rest, err := a.header.decode(packet)
	if e.heart != nil && source == e.heart.emitter {
		e.heart.heard = true
	}
	switch h := &a.header; {
	case err != nil:
		return err
	// The requests that needed it have ended. If it lives after all, its heart has to learn that it
	// was declared dead, so that it ends (H7).
	case e.dead[source] && h.kind < beat: // declared dead: only its heart's packets are answered
		return nil
	case h.kind <= offer: // a message, most often
	// The fields are as yet unchecked: these return an error for what does not fit this process's
	// own state.
	case h.kind >= beat:
		return e.heart.take(source, *h, rest)
	case h.kind == accept || h.kind == pulled:
		return e.accepted(source, *h)
	case h.kind == part:
		return e.takePart(source, *h, rest)
	case h.kind == withdrawn:
		e.forget(source, *h)
		return nil
	case h.kind == credit:
		return e.takeCredit(source, *h)
	case h.kind == reminder:
		return e.takeReminder(source, *h)
	default:
		return e.takeLiveness(source, *h)
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
	// A member that has closed the communicator may be ahead of its sender. Early messages would
	// otherwise be kept forever. A member that has not made it yet keeps them, because Sub waits
	// for nobody.
	if e.isClosed(to) {
		e.received(a)
	} else {
		e.early[to] = append(e.early[to], a.kept())
	}
	return nil
}

// remembered is the least number of closed communicators that are remembered; at most twice as many
// are. Nothing is under way to communicators that were closed earlier. The sets have a limit,
// because programs may make and close communicators without end.
const remembered = 1 << 15

// close makes the engine drop packets that still come for a communicator.
func (e *engine) close(c contextID) {
	delete(e.comms, c)
	e.latest = nil
	// The older half is dropped at once. To drop the oldest communicator each time would need a
	// queue beside the set.
	if len(e.closed[0]) == remembered {
		e.closed = [2]map[contextID]struct{}{{}, e.closed[0]}
	}
	e.closed[0][c] = struct{}{}
}

// isClosed says whether a communicator was closed recently: see remembered.
func (e *engine) isClosed(c contextID) bool {
	_, gone := e.closed[0][c]
	if !gone {
		_, gone = e.closed[1][c]
	}
	return gone
}

// sendPacket sends a packet to a process. It does not wait: where there is no room, the packet is
// copied (F1). If it fails, all requests have ended when it returns, so the caller looks at e.err
// before it uses one.
func (e *engine) sendPacket(to int, h *header, rest []byte) {
	if o := e.out[to]; o != nil {
		e.sendNear(o, h, rest)
	} else if err := e.fabric.Send(to, *h, rest); err != nil {
		e.fail(err)
	}
}

// fail ends all requests and transfers with an error, after which nothing works at this process.
// Only the first error counts.
func (e *engine) fail(err error) {
	if e.err != nil {
		return
	}
	// From here on nothing begins (see barred), so what is ended below is all there is.
	e.err = err
	e.over.Store(true)
	e.wake()
	e.driving.invite() // one after another, all goroutines that wait find that it is over
	// OnFailure's function is told first. It may have to tell the program why, before the program
	// hears of a request that has ended.
	for _, c := range e.comms {
		c.tellFailure()
	}
	for _, c := range e.comms {
		e.endAll(c.TakeIf(func(*transport.Request) bool { return true }), err)
		clear(c.moving)
	}
	// Each transfer with a request is in one of these: see rendezvous. One that is in two of them
	// ends once, because abandon sets over.
	for _, t := range e.offers {
		e.abandon(t, err)
	}
	for _, t := range e.coming {
		e.abandon(t, err)
	}
	for _, t := range e.transfers { // their buffers stay pinned: the fabric may still use them
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
	// e.transfers stays, because the fabric may still report ends, which ended then ignores.
	clear(e.offers)
	clear(e.coming)
}

// tellFailure adds the call of OnFailure's function to the callbacks.
func (c *comm) tellFailure() {
	if told, err := c.onFailure, c.e.err; told != nil {
		c.e.due = append(c.e.due, callback{call: func() { told(err) }})
	}
}

// abandon ends a transfer and its request with an error.
func (e *engine) abandon(t *transfer, err error) {
	if t.request != nil && !t.over {
		e.end(t.request, err)
	}
	t.over = true
}
