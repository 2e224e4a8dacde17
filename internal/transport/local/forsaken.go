package local

import "github.com/mpicx/go-mpicx/internal/transport"

// A rank whose program has ended may leave others waiting for ever. Where processes are
// mortal those that name it kill it, see awaits. What is here looks at ports whose rank
// waits, as the first of these two happens after the other: it has begun to wait, or to
// wait for more; or somebody has gone. So a job in which nobody has gone pays for a load,
// and it costs nothing to go while nobody waits.

// Idle counts the goroutines that wait.
func (c *Comm) Idle(n int) {
	if c.own.idle.Add(int32(n)); n > 0 {
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

// endForsaken ends what waits for ranks that have gone, if this rank waits. Where
// processes are mortal it kills one that a receive from anybody waits for.
func (p *port) endForsaken() {
	if p.g.job.gone.Load() == 0 || p.idle.Load() == 0 {
		return
	}
	if p.g.mortal {
		p.lastHope().expireIfLate()
		return
	}
	p.mu.Lock()
	ended := p.unpostIf(func(r *transport.Request) bool { return p.forsaken(r.Peer, r.Tag, r.Epoch) })
	p.mu.Unlock()
	for r := ended; r != nil; {
		next := r.Next
		r.Next = nil
		end(r, &transport.ReturnedError{Rank: r.Peer})
		r = next
	}
	for _, m := range p.unlistIf(func(m *message) bool { return p.forsaken(m.dest, m.Tag, m.Epoch) }) {
		if r := p.g.ports[m.dest].withdraw(m); r != nil {
			end(r, &transport.ReturnedError{Rank: m.dest})
		}
	}
}

// lastHope returns the process that has gone and shall die for a receive from anybody.
func (p *port) lastHope() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.posted.All() {
		if r.Peer == transport.AnySource && p.forsaken(r.Peer, r.Tag, r.Epoch) {
			for i := range p.g.ports {
				if q := p.g.ports[i].process; i != p.rank && !q.dead.Load() {
					return q
				}
			}
		}
	}
	return nil
}

// forsaken says whether a request needs ranks that have gone. The library's own requests
// do not: collective operations that a program has begun go on after it.
func (p *port) forsaken(peer, tag int, e transport.Epoch) bool {
	ports := p.g.ports
	switch {
	case tag < transport.AnyTag:
		return false
	case peer >= 0:
		return peer != p.rank && ports[peer].hasGone(e)
	}
	for i := range ports {
		if i != p.rank && !ports[i].hasGone(e) {
			return false
		}
	}
	return len(ports) > 1
}

// hasGone says whether the port's rank has gone, or died, and does not end epoch e: what
// is of an epoch that it has left will end with that.
func (p *port) hasGone(e transport.Epoch) bool {
	return (p.process.gone.Load() || p.process.dead.Load()) && !e.Stale(p.epochNow())
}
