package local

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A rank whose program has ended may leave others waiting for ever. Where processes are
// mortal those that name it kill it, see awaits, and all others may have died. What is here looks at what programs wait
// for, as the second of these two happens: one has begun to wait; or somebody has gone.
// So a Wait in a job in which nobody has gone pays for a load. Who goes looks at all ports
// only if a request names it, or if nobody is left but one: else n ranks that end would
// look at n ports each.

// Look ends what this rank waits for in vain.
func (c *Comm) Look() {
	c.g.compare.soon()
	if c.g.absent.Load() > 0 {
		c.own.endForsaken()
	}
}

// sweep looks at all ports. One goroutine does so at a time, and once more if another
// wanted to meanwhile.
func (g *group) sweep() {
	if g.sweeps.Add(1) > 1 {
		return
	}
	for wanted := int32(1); ; wanted = g.sweeps.Load() {
		for i := range g.ports {
			g.ports[i].endForsaken()
		}
		if g.sweeps.CompareAndSwap(wanted, 0) {
			return
		}
	}
}

// endForsaken ends what this rank waits for and only ranks that have gone could end.
// Where processes are mortal it kills one that a receive from anybody needs, and ends
// that once all have died and the program knows of it.
func (p *port) endForsaken() {
	if p.g.mortal {
		p.lastHope().expireIfLate()
		p.endIf(func(r *transport.Request) bool {
			return p.IsAlone(p.rank, len(p.g.ports)) && r.Peer == transport.AnySource && r.IsAwaited() && r.HasAcknowledged()
		}, &transport.DeadError{Rank: transport.AnySource})
		return
	}
	p.mu.Lock()
	ended := p.TakeIf(p.forsaken)
	p.mu.Unlock()
	p.served(ended)
	for r := range match.List(ended) {
		end(r, &transport.ReturnedError{Rank: r.Peer})
	}
	for _, m := range p.listed() {
		if r := p.g.ports[m.dest].withdrawIf(m, p.forsaken); r != nil {
			p.unlist(m)
			end(r, &transport.ReturnedError{Rank: r.Peer})
		}
	}
}

// lastHope returns the process that has gone and shall die for a receive from anybody.
func (p *port) lastHope() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.Posted.All() {
		if r.Peer == transport.AnySource && p.forsaken(r) {
			for i := range p.g.ports {
				if q := p.g.ports[i].process; i != p.rank && !q.dead.Load() {
					return q
				}
			}
		}
	}
	return nil
}

// forsaken says whether the program waits for r, and needs ranks for it that have gone.
// It does not for the library's own requests: collective operations that a program has
// begun go on after it.
func (p *port) forsaken(r *transport.Request) bool {
	ports, e := p.g.ports, r.Epoch
	switch {
	case transport.IsCollective(r.Tag):
		return false
	case r.Peer >= 0:
		return r.Peer != p.rank && ports[r.Peer].hasGone(e) && r.IsAwaited()
	}
	for i := range ports {
		if i != p.rank && !ports[i].hasGone(e) {
			return false
		}
	}
	return len(ports) > 1 && r.IsAwaited()
}

// hasGone says whether the port's rank has gone, or died, and does not end epoch e: what
// is of an epoch that it has left will end with that.
func (p *port) hasGone(e transport.Epoch) bool {
	return (p.process.gone.Load() || p.process.dead.Load()) && !e.Stale(p.Epoch())
}
