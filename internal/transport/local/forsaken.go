package local

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A rank whose program has ended may leave others waiting forever. If processes are mortal, a
// request that names such a rank makes it expire (see awaits), and all other ranks may have
// died. The functions here look at what programs wait for, at the later of two events: a
// program has begun to wait, or a rank has gone. While no rank has gone, a Wait pays for one
// load. A rank that goes looks at all ports only if a request names it, or if at most one rank
// is left. Otherwise n ranks that end would look at n ports each.

// Look ends the requests that this rank waits for in vain.
func (c *Comm) Look() {
	c.g.compare.soon()
	if c.g.absent.Load() > 0 {
		c.own.endForsaken()
	}
}

// sweep looks at all ports. One goroutine does this at a time, and does it again if others
// wanted it meanwhile.
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

// endForsaken ends the requests that this rank waits for if only ranks that have gone could
// complete them. If processes are mortal, it makes one expire that a receive from AnySource
// needs, and ends the receive once all have died and the program has acknowledged this.
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

// lastHope returns a process that has gone and must expire because of a receive from AnySource.
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

// forsaken says whether the program waits for r, and all ranks that could complete r have gone.
// It returns false for the library's own requests, because collective operations continue after
// the program that has begun them.
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

// hasGone says whether the port's rank has gone or died without leaving epoch e. Requests of an
// epoch that it has left end with that epoch.
func (p *port) hasGone(e transport.Epoch) bool {
	return (p.process.gone.Load() || p.process.dead.Load()) && !e.Stale(p.Epoch())
}
