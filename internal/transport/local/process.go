package local

import (
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A process is one rank of the job with all its ports. It dies as a whole.
type process struct {
	dead, left, expired atomic.Bool
	gone                atomic.Bool  // it has left, and its messages have arrived
	absent              atomic.Bool  // it has gone or died, and its groups count it
	awaited             atomic.Int32 // requests that wait for it: see port.counts

	mu     sync.Mutex
	groups []weak.Pointer[group] // that it is a member of
}

// join notes that the process is a member of g. It says whether the process is dead.
func (p *process) join(g *group) (dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.groups) == cap(p.groups) { // from time to time, drop the groups that are gone
		live := p.groups[:0]
		for _, w := range p.groups {
			if w.Value() != nil {
				live = append(live, w)
			}
		}
		p.groups = live
	}
	p.groups = append(p.groups, weak.Make(g))
	if p.absent.Load() { // miss may count it as well, which costs one unneeded look
		g.absent.Add(1)
	}
	return p.dead.Load()
}

// leave notes that the program has ended: what others wait for will never come.
func (p *process) leave(j *job, failed bool) {
	again := p.left.Swap(true)
	if j.mortal && (failed || p.awaited.Load() > 0 && slices.ContainsFunc(p.live(), func(g *group) bool { return g.needs(p) })) {
		p.expire()
	}
	if again {
		return
	}
	p.whenTold(func() {
		p.gone.Store(true)
		p.miss()
		named := !j.mortal && p.awaited.Load() > 0
		for _, g := range p.live() {
			if named || int(g.absent.Load()) >= len(g.ports)-1 {
				g.sweep()
			}
		}
	})
}

// miss counts the process as absent in its groups.
func (p *process) miss() {
	if p.absent.Swap(true) {
		return
	}
	for _, g := range p.live() {
		g.absent.Add(1)
	}
}

// live returns the groups that are in use.
func (p *process) live() (groups []*group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.groups {
		if g := w.Value(); g != nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// rank returns p's number in g.
func (g *group) rank(p *process) int {
	for i := range g.ports {
		if g.ports[i].process == p {
			return i
		}
	}
	return -1
}

// needs says whether a request of another process waits for p, in an epoch that p has not left.
// Requests of epochs that p has left end by themselves.
func (g *group) needs(p *process) bool {
	rank := g.rank(p)
	epoch := g.ports[rank].Epoch()
	for i := range g.ports {
		q := &g.ports[i]
		q.mu.Lock()
		found := false
		for r := range q.Posted.All() {
			found = found || r.Peer == rank && i != rank && !r.Epoch.Stale(epoch)
		}
		if i == rank {
			for m := range q.All() {
				found = found || m.Send != nil && m.Source != rank && !m.Epoch.Stale(epoch)
			}
		}
		q.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}

// expire ends a process whose program has ended, once everything that it has sent has arrived,
// because others may rely on that.
func (p *process) expire() {
	if p.expired.Swap(true) {
		return
	}
	p.whenTold(p.die)
}

// whenTold calls f once everything that the process has sent has arrived, in all its groups.
func (p *process) whenTold(f func()) {
	var under atomic.Int32
	under.Store(1)
	arrived := func() {
		if under.Add(-1) == 0 {
			f()
		}
	}
	for _, g := range p.live() {
		under.Add(1)
		g.relay.whenIdle(arrived)
	}
	arrived()
}

// die ends the process in all its groups. All listeners are told before any request of another
// process ends. Nobody learns of the death while messages that die with the process can be received.
func (p *process) die() {
	p.mu.Lock()
	again := p.dead.Swap(true)
	p.mu.Unlock()
	if again {
		return
	}
	p.miss()
	groups := p.live()
	for _, g := range groups {
		g.lose(p)
	}
	for _, g := range groups {
		g.tellDeath(p)
	}
	for _, g := range groups {
		g.endAfterDeath(p)
	}
}

// lose notes that a process has died, and ends its sends that no receive has taken. As the mu of each
// port is held after the death, every send that was let through before is listed by then.
func (g *group) lose(p *process) {
	victim := g.rank(p)
	for i := range g.ports {
		port := &g.ports[i]
		port.mu.Lock()
		port.Lose(victim)
		port.mu.Unlock()
	}
	g.ports[victim].endSends(func(*message) bool { return true }, transport.ErrDied)
}

// tellDeath tells the listeners of g that a process has died.
func (g *group) tellDeath(p *process) {
	victim := g.rank(p)
	for i := range g.ports {
		port := &g.ports[i]
		if port.attention.Load() == listening && (i == victim || !port.process.dead.Load()) {
			port.listener.Died(victim)
		}
	}
}

// endAfterDeath ends the requests in g that a death ends: those of the dead process, those that
// name it, and those of operations of all members.
func (g *group) endAfterDeath(p *process) {
	victim := g.rank(p)
	lost := error(&transport.DeadError{Rank: victim})
	why := func(i int) error {
		if i == victim {
			return transport.ErrDied
		}
		return lost
	}
	for i := range g.ports {
		g.ports[i].endIf(func(r *transport.Request) bool { return i == victim || r.Needs(victim) }, why(i))
	}
	for i := range g.ports { // each send that was let through before lose is listed now
		g.ports[i].endSends(func(m *message) bool { return m.dest == victim || transport.IsCollective(m.Tag) }, why(i))
	}
	g.mu.Lock()
	for name, s := range g.subs {
		if s.settle(victim) {
			delete(g.subs, name)
		}
	}
	g.mu.Unlock()
}

// end completes a list of requests with err.
func end(list *transport.Request, err error) {
	for r := range match.List(list) {
		r.Err = err
		r.Done.Completed(r)
	}
}

// Die ends this process.
func (c *Comm) Die() { c.own.process.die() }

// Leave says that this rank's program has ended.
func (c *Comm) Leave(failed bool) {
	c.g.compare.soon()
	c.own.process.leave(c.g.job, failed)
}

// awaits counts a request of epoch e that waits for p's rank. If the rank's process has left,
// and the rank has not left e, awaits returns the process: the caller makes it expire when it
// holds no lock.
func (p *port) awaits(e transport.Epoch) (late *process) {
	p.process.awaited.Add(1)
	if p.g.mortal && p.process.left.Load() && !e.Stale(p.Epoch()) {
		return p.process
	}
	return nil
}

func (p *process) expireIfLate() {
	if p != nil {
		p.expire()
	}
}
