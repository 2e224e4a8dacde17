package local

import (
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// relay carries the messages between the listeners of a group: the first goroutine
// to come does it for those that come meanwhile. It takes one message at a time
// from each that has some, in turn, as a network would.
type relay struct {
	mu      sync.Mutex
	ready   []*port  // whose listeners have something to send, but for those in turn
	then    []func() // to be called when there are none
	running bool
}

func (y *relay) poke(p *port) {
	if p.poked.Swap(true) {
		return
	}
	y.mu.Lock()
	y.ready = append(y.ready, p)
	y.run()
}

// whenIdle calls f once all that is to be sent has been.
func (y *relay) whenIdle(f func()) {
	y.mu.Lock()
	y.then = append(y.then, f)
	y.run()
}

// run carries messages until there are none. The caller holds mu, and loses it.
func (y *relay) run() {
	defer y.mu.Unlock()
	if y.running {
		return
	}
	y.running = true
	var turn []*port
	for len(y.ready)+len(turn)+len(y.then) > 0 {
		switch {
		case len(y.ready) > 0:
			turn = append(turn, y.ready...)
			clear(y.ready)
			y.ready = y.ready[:0]
		case len(turn) == 0:
			then := y.then
			y.then = nil
			y.mu.Unlock()
			for _, f := range then {
				f()
			}
			y.mu.Lock()
			continue
		}
		y.mu.Unlock()
		again := turn[:0]
		for _, p := range turn {
			p.poked.Store(false) // first: who pokes now may be too late for Next
			if to, payload, ok := p.listener.Next(); ok {
				p.send(to, payload)
				if !p.poked.Swap(true) {
					again = append(again, p)
				}
			}
		}
		clear(turn[len(again):])
		turn = again
		y.mu.Lock()
	}
	y.ready, y.running = nil, false
}

// What a port does with messages to its listener.
const (
	keeping   = iota // for one to come
	listening        // hands them to it
	closed           // drops them
)

// early is a message that came before there was a listener.
type early struct {
	from    int
	payload []byte
}

// send gives a message of p's listener to that of rank dest, or keeps it for that.
func (p *port) send(dest int, payload []byte) {
	g, rank := p.g, p.rank
	to := &g.ports[dest]
	if g.deaths.Load() && (p.process.dead.Load() || to.process.dead.Load()) {
		return
	}
	if to.attention.Load() == keeping && to.keep(rank, payload) {
		return
	}
	if to.attention.Load() == listening {
		to.listener.Take(rank, payload)
	}
}

// keep keeps a message unless there is a listener now.
func (p *port) keep(from int, payload []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attention.Load() != keeping {
		return false
	}
	p.early = append(p.early, early{from, payload})
	return true
}

// Listen has l take what others send.
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
	c.Poke()
}

// Poke has the listener asked for messages, if there is one.
func (c *Comm) Poke() {
	if c.own.attention.Load() == listening {
		c.g.relay.poke(c.own)
	}
}
