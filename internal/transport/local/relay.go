package local

import (
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// relay hands the messages that the ranks of a group post to their listeners, in
// the order in which they were posted: the first goroutine to come does it for
// those that come meanwhile.
type relay struct {
	mu          sync.Mutex
	queue, idle []posted
	running     bool
}

// posted is a message, or something to be done once those before it are there.
type posted struct {
	to      *port
	from    int
	payload []byte
	then    func()
}

// keptPosts bounds the room that an idle relay keeps.
const keptPosts = 256

func (y *relay) do(m posted) {
	y.mu.Lock()
	y.queue = append(y.queue, m)
	if y.running {
		y.mu.Unlock()
		return
	}
	y.running = true
	for len(y.queue) > 0 {
		todo := y.queue
		y.queue = y.idle
		y.mu.Unlock()
		for i := range todo {
			if m := &todo[i]; m.then != nil {
				m.then()
			} else {
				m.to.hand(m)
			}
		}
		clear(todo)
		y.mu.Lock()
		y.idle = todo[:0]
	}
	if y.running = false; cap(y.queue)+cap(y.idle) > keptPosts {
		y.queue, y.idle = nil, nil
	}
	y.mu.Unlock()
}

// What a port does with messages that are posted to it.
const (
	keeping   = iota // for a listener to come
	listening        // hands them to it
	closed           // drops them
)

// Post has the message handed to rank dest, now or after others. That this rank
// has died since does not matter.
func (c *Comm) Post(dest int, payload []byte) {
	if !c.g.deaths.Load() || !c.own.process.dead.Load() {
		c.g.relay.do(posted{to: &c.g.ports[dest], from: c.rank, payload: payload})
	}
}

// hand gives m to the listener, or keeps it.
func (p *port) hand(m *posted) {
	if p.g.deaths.Load() && p.process.dead.Load() {
		return
	}
	if p.attention.Load() == keeping && p.keep(m) {
		return
	}
	if p.attention.Load() == listening {
		p.listener.Take(m.from, m.payload)
	}
}

// keep keeps m unless there is a listener now.
func (p *port) keep(m *posted) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attention.Load() != keeping {
		return false
	}
	p.early = append(p.early, *m)
	return true
}

// Listen has l take what is posted, and what was.
func (c *Comm) Listen(l transport.Listener) {
	p := c.own
	for {
		p.mu.Lock()
		early := p.early
		p.early = nil
		if len(early) == 0 {
			p.listener = l
			p.attention.CompareAndSwap(keeping, listening)
			p.mu.Unlock()
			break
		}
		p.mu.Unlock()
		for _, m := range early {
			l.Take(m.from, m.payload)
		}
	}
	if c.g.deaths.Load() {
		for i := range c.g.ports {
			if c.g.ports[i].process.dead.Load() {
				l.Died(i)
			}
		}
	}
}
