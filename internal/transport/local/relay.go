package local

import (
	"runtime"
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// relay carries the messages between the listeners of a communicator. The first goroutine that has
// a message to send also carries the messages of goroutines that come meanwhile, and gets help if
// there are many. It takes one message at a time from each listener that has any, in turn, as a
// network would. Calls do not nest: a listener that calls Poke while it takes a message finds a
// worker there, and only its side is added to ready. So the depth of the stack does not depend on
// the number of ranks.
type relay struct {
	mu      sync.Mutex
	ready   []*Comm  // sides whose listeners may have something to send
	onIdle  []func() // called when no side is ready
	workers int      // goroutines that carry messages
}

// batch is the number of sides that a worker serves at a time.
const batch = 32

// Values of Comm.asking: whether a listener is asked for messages.
const (
	idle       = iota
	asked      // until it has no more
	askedAgain // and then once more, because it may have new ones
)

func (y *relay) poke(s *Comm) {
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

func (y *relay) workIfNobodyDoes() {
	if y.workers == 0 {
		y.workers++
		y.work()
	}
}

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
		sides := buf[:copy(buf[:], y.ready)]
		y.ready = y.ready[len(sides):]
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
		if len(y.ready) > batch && y.workers < runtime.GOMAXPROCS(0) {
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
		y.ready = nil
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
// one.
func (s *Comm) send(dest int, payload []byte) {
	to, rank := &s.comm.sides[dest], s.rank
	if s.process.dead.Load() || to.process.dead.Load() {
		return
	}
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
		early := s.early
		s.early = nil
		if len(early) == 0 {
			s.listener = l
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
	s.Poke()
}

// Poke makes the relay ask the listener for messages, if there is one.
func (s *Comm) Poke() {
	if s.attention.Load() == listening {
		s.comm.relay.poke(s)
	}
}
