package local

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// relay carries the messages between the listeners of a communicator. The first goroutine that has
// a message to send also carries the messages of goroutines that come meanwhile, and gets help if
// there are many. It takes one message at a time from each listener that has any, in turn, as a
// network would. Calls do not nest: a listener that calls Poke while it takes a message finds a
// worker there, and only its side is added to ready. So the depth of the stack does not depend on
// the number of ranks.
type relay struct {
	// mu guards all fields. It is not held while a listener or a function of onIdle is called,
	// because these may poke, start operations and take any locks of their own.
	mu      sync.Mutex
	ready   []*Comm // sides whose listeners may have something to send, from first
	first   int
	onIdle  []func() // called when no side is ready
	workers int      // goroutines that carry messages
	busy    *busy    // of the job
}

// busy are the relays of a job that have workers.
type busy struct {
	mu     sync.Mutex
	relays map[*relay]struct{}
}

func (b *busy) begin(y *relay) {
	b.mu.Lock()
	b.relays[y] = struct{}{}
	b.mu.Unlock()
}

func (b *busy) end(y *relay) {
	b.mu.Lock()
	delete(b.relays, y)
	b.mu.Unlock()
}

// whenIdle calls f once each of them has had nothing to send.
func (b *busy) whenIdle(f func()) {
	b.mu.Lock()
	all := slices.Collect(maps.Keys(b.relays))
	b.mu.Unlock()
	var under atomic.Int32
	// This one is for the loop: f must not be called before all are counted. F runs on the
	// goroutine that counts down last, which holds no lock: this one, or one of a relay.
	under.Store(1)
	idle := func() {
		if under.Add(-1) == 0 {
			f()
		}
	}
	for _, y := range all {
		under.Add(1)
		y.whenIdle(idle)
	}
	idle()
}

// batch is the number of sides that a worker serves at a time.
const batch = 32

// Values of Comm.asking: whether a listener is asked for messages.
const (
	// Only the goroutine that makes it asked adds the side to ready, and only the worker that makes
	// it idle takes the side out. So a side is in ready once at most.
	idle       = iota
	asked      // until it has no more
	askedAgain // and then once more, because it may have new ones
)

func (y *relay) poke(s *Comm) {
	// If the worker makes it idle between the two attempts, Next may have been called too early,
	// and this goroutine tries again.
	for !s.asking.CompareAndSwap(idle, asked) {
		if s.asking.CompareAndSwap(asked, askedAgain) || s.asking.Load() == askedAgain {
			return
		}
	}
	y.mu.Lock()
	y.ready = append(y.ready, s)
	y.workIfNobodyDoes()
	y.mu.Unlock()
}

// whenIdle calls f once no listener has anything to send.
func (y *relay) whenIdle(f func()) {
	y.mu.Lock()
	y.onIdle = append(y.onIdle, f)
	y.workIfNobodyDoes()
	y.mu.Unlock()
}

// workIfNobodyDoes carries messages on this goroutine if no worker is there to do so. The caller
// holds mu, and has added to ready or onIdle in the same hold. A worker looks at both before it
// leaves, with mu, so nothing that was added is left behind. Mu is unlocked in between, so the
// caller must not rely on what it has read before.
func (y *relay) workIfNobodyDoes() {
	if y.workers == 0 {
		y.workers++
		y.busy.begin(y)
		y.work()
	}
}

// help is work on a goroutine of its own. It was counted before that goroutine began, so no other
// worker takes itself for the last one meanwhile.
func (y *relay) help() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.work()
}

// work carries messages until there are none. The caller has counted itself in workers and
// holds mu, which work unlocks while it calls others.
func (y *relay) work() {
	var buf [batch]*Comm
	for {
		// Sides are taken from the front and put back at the end. Each gives one message in its
		// turn, and news that comes meanwhile may make its next message unnecessary (see
		// Listener.Next).
		sides := buf[:copy(buf[:], y.ready[y.first:])]
		if y.first += len(sides); y.first > len(y.ready)/2 {
			y.ready, y.first = slices.Delete(y.ready, 0, y.first), 0
		}
		// Only the last worker calls these, because another one may be handing on the last message.
		if len(sides) == 0 {
			if y.workers > 1 || len(y.onIdle) == 0 {
				break
			}
			f := y.onIdle[0]
			y.onIdle = y.onIdle[1:]
			y.mu.Unlock()
			f()
			y.mu.Lock()
			continue
		}
		// Help is worth a goroutine only if another full batch is left for it, and more workers
		// than cores would only get in each other's way.
		if len(y.ready)-y.first > batch && y.workers < runtime.GOMAXPROCS(0) {
			y.workers++
			go y.help()
		}
		y.mu.Unlock()
		more := sides[:0]
		for _, s := range sides {
			// asking is not idle, so no other worker has this side: Next is called by one goroutine
			// at a time.
			to, payload, ok := s.listener.Next()
			if ok {
				s.send(to, payload)
			} else if s.asking.CompareAndSwap(asked, idle) {
				continue
			} else {
				// Poke was called while Next was asked, which may not have seen the new message:
				// ask once more.
				s.asking.Store(asked)
			}
			more = append(more, s)
		}
		y.mu.Lock()
		y.ready = append(y.ready, more...)
	}
	if y.workers--; y.workers == 0 {
		y.busy.end(y)
		y.ready, y.first = nil, 0 // errors are rare, so none of its memory is kept for the next one
	}
}

// Values of Comm.attention: what a rank does with messages to its listener.
const (
	keeping   = iota // keeps them until there is a listener
	listening        // hands them to the listener
	closed           // drops them
)

// early is a message that came before there was a listener.
type early struct {
	from    int
	payload []byte
}

// send hands a message of s's listener to the listener of rank dest, or keeps it until there is
// one. A death ends both what a process sends and what it takes. For a death that may wait, expire
// lets all messages arrive first.
func (s *Comm) send(dest int, payload []byte) {
	to, rank := &s.comm.sides[dest], s.rank
	if s.process.dead.Load() || to.process.dead.Load() {
		return
	}
	// Attention never changes back to keeping. If keep finds that it has changed, the listener is
	// there to be called, without mu, or the side is closed.
	if to.attention.Load() == keeping && to.keep(rank, payload) {
		return
	}
	if to.attention.Load() == listening {
		to.listener.Take(rank, payload)
	}
}

// keep keeps a message, unless there is a listener by now.
func (s *Comm) keep(from int, payload []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Listen sets attention with mu, when it has handed on all that is in early. So a message is
	// kept before that or handed on after it, and the order of each sender's messages stays.
	if s.attention.Load() != keeping {
		return false
	}
	s.early = append(s.early, early{from, payload})
	return true
}

// Listen makes l the rank's listener, and hands it what came before.
func (s *Comm) Listen(l transport.Listener) {
	var dead []int
	for {
		s.mu.Lock()
		// Take is called without mu, and attention stays keeping meanwhile. What comes now is kept,
		// and handed on in the next turn, behind what came before it.
		early := s.early
		s.early = nil
		if len(early) == 0 {
			s.listener = l
			// The order matters to tellDeath and Poke, which read attention without mu, and then
			// the listener. A side that was closed stays closed.
			s.attention.CompareAndSwap(keeping, listening)
			dead = s.Dead() // tellDeath tells l of later deaths
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		for _, m := range early {
			l.Take(m.from, m.payload)
		}
	}
	for _, rank := range dead {
		l.Died(rank)
	}
	// Until now Poke did nothing here, and the messages that l has taken may have given it some to
	// send.
	s.Poke()
}

// Poke makes the relay ask the listener for messages, if there is one.
func (s *Comm) Poke() {
	if s.attention.Load() == listening {
		s.comm.relay.poke(s)
	}
}
