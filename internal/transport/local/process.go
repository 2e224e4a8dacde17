package local

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A process is one rank of the job with all its sides. It dies as a whole.
type process struct {
	dead, left atomic.Bool
	silent     atomic.Bool  // it has left, and its messages have arrived
	absent     atomic.Bool  // it has left or died, and its communicators count it
	awaited    atomic.Int32 // requests that wait for it: see Comm.counts

	mu            sync.Mutex
	communicators []weak.Pointer[communicator] // that it is a member of
}

// join notes that the process is a member of c. It says whether the process is dead.
func (p *process) join(c *communicator) (dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.communicators) == cap(p.communicators) { // from time to time, drop the communicators that are gone
		live := p.communicators[:0]
		for _, w := range p.communicators {
			if w.Value() != nil {
				live = append(live, w)
			}
		}
		p.communicators = live
	}
	p.communicators = append(p.communicators, weak.Make(c))
	if p.absent.Load() { // miss may count it as well, which costs one unneeded look
		c.absent.Add(1)
	}
	return p.dead.Load()
}

// leave notes that the program has ended. It will send no message that others wait for.
func (p *process) leave(j *job, dies bool) {
	if dies && j.mortal {
		p.expire()
		return
	}
	p.left.Store(true)
	if j.mortal && p.awaited.Load() > 0 {
		for _, c := range p.live() {
			c.expireIfNeeded(p)
		}
	}
	p.whenTold(func() {
		p.silent.Store(true)
		p.miss()
		named := !j.mortal && p.awaited.Load() > 0
		for _, c := range p.live() {
			if named || int(c.absent.Load()) >= len(c.sides)-1 {
				for i := range c.sides {
					c.sides[i].endForsaken()
				}
			}
		}
	})
}

// miss counts the process as absent in its communicators.
func (p *process) miss() {
	if p.absent.Swap(true) {
		return
	}
	for _, c := range p.live() {
		c.absent.Add(1)
	}
}

// live returns the communicators that are in use.
func (p *process) live() (communicators []*communicator) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.communicators {
		if c := w.Value(); c != nil {
			communicators = append(communicators, c)
		}
	}
	return communicators
}

// rank returns p's number in c.
func (c *communicator) rank(p *process) int {
	for i := range c.sides {
		if c.sides[i].process == p {
			return i
		}
	}
	return -1
}

// needs says whether a request of another process needs p, in an epoch that p has not left.
// Requests of epochs that p has left end by themselves.
func (c *communicator) needs(p *process) (needed bool) {
	rank := c.rank(p)
	epoch := c.sides[rank].Epoch()
	for i := range c.sides {
		q := &c.sides[i]
		q.mu.Lock()
		for r := range q.Posted.All() {
			needed = needed || r.Peer == rank && i != rank && !r.Epoch.Stale(epoch)
		}
		if i == rank {
			for m := range q.All() {
				needed = needed || m.Send != nil && m.Source != rank && !m.Epoch.Stale(epoch)
			}
		}
		q.mu.Unlock()
	}
	return needed
}

// expireIfNeeded ends p, whose program has ended, if another rank needs it.
func (c *communicator) expireIfNeeded(p *process) {
	if c.needs(p) {
		p.expire()
	}
}

// expire ends a process whose program has ended, once everything that it has sent has arrived,
// because others may rely on that.
func (p *process) expire() { p.whenTold(p.die) }

// whenTold calls f once everything that the process has sent has arrived, in all its communicators.
func (p *process) whenTold(f func()) {
	var under atomic.Int32
	under.Store(1)
	arrived := func() {
		if under.Add(-1) == 0 {
			f()
		}
	}
	for _, c := range p.live() {
		under.Add(1)
		c.relay.whenIdle(arrived)
	}
	arrived()
}

// die ends the process in all its communicators. All listeners are told before any request of
// another process ends. Nobody learns of the death while messages that die with the process can be
// received.
func (p *process) die() {
	p.mu.Lock()
	again := p.dead.Swap(true)
	p.mu.Unlock()
	if again {
		return
	}
	p.miss()
	communicators := p.live()
	for _, c := range communicators {
		c.lose(p)
	}
	for _, c := range communicators {
		c.tellDeath(p)
	}
	for _, c := range communicators {
		c.endAfterDeath(p)
	}
}

// lose notes that a process has died, and ends its sends that no receive has taken. As the mu of
// each side is held after the death, every send that was let through before is listed by then.
func (c *communicator) lose(p *process) {
	c.board.mu.Lock()
	c.board.blind, c.board.places = true, nil
	c.board.mu.Unlock()
	victim := c.rank(p)
	for i := range c.sides {
		side := &c.sides[i]
		side.mu.Lock()
		side.Lose(victim)
		side.mu.Unlock()
	}
	c.sides[victim].endSends(func(*message) bool { return true }, transport.ErrDied)
}

// tellDeath tells the listeners of c that process p has died.
func (c *communicator) tellDeath(p *process) {
	victim := c.rank(p)
	for i := range c.sides {
		side := &c.sides[i]
		if side.attention.Load() == listening && (i == victim || !side.process.dead.Load()) {
			side.listener.Died(victim)
		}
	}
}

// endAfterDeath ends the requests in c that a death ends: those of the dead process, those that
// name it, and those of operations of all members.
func (c *communicator) endAfterDeath(p *process) {
	victim := c.rank(p)
	lost := error(&transport.DeadError{Rank: victim})
	why := func(i int) error {
		if i == victim {
			return transport.ErrDied
		}
		return lost
	}
	for i := range c.sides {
		c.sides[i].endIf(func(r *transport.Request) bool { return i == victim || r.Needs(victim) }, why(i))
	}
	for i := range c.sides { // each send that was let through before lose is listed now
		c.sides[i].endSends(func(m *message) bool { return m.dest == victim || transport.IsCollective(m.Tag) }, why(i))
	}
	c.mu.Lock()
	for name, s := range c.subs {
		if s.settle(victim) {
			delete(c.subs, name)
		}
	}
	c.mu.Unlock()
}

// end ends the requests of a list with err.
func end(list *transport.Request, err error) {
	for r := range match.List(list) {
		r.Err = err
		r.Done.Completed(r)
	}
}

func (s *Comm) Die()            { s.process.die() }
func (s *Comm) Leave(dies bool) { s.process.leave(s.comm.job, dies) }

func (s *Comm) HasReturned(rank int) bool { return s.comm.sides[rank].process.left.Load() }

// awaits counts a request that waits for s's rank. It returns false if the rank's process has left:
// the caller then calls expireIfNeeded when it holds no lock.
func (s *Comm) awaits() (stays bool) {
	s.process.awaited.Add(1)
	return !s.comm.mortal || !s.process.left.Load()
}
