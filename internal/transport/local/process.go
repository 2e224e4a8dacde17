package local

import (
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// A process is one rank of the job with all its sides. It dies as a whole. The atomic fields are
// read without mu by ranks that begin operations. mu protects members, and makes die and join
// exclude each other.
type process struct {
	// Each flag is set once. Dead changes with mu. Left is set when the program ends, silent when
	// what it has sent has arrived, and absent after silent or dead. The count of a communicator is
	// raised last, so a rank that finds itself counted there finds the flags that are the reason.
	dead, left atomic.Bool
	silent     atomic.Bool // it has left, and its messages have arrived
	absent     atomic.Bool // it has left or died, and its communicators count it
	// It counts the receives and probes of other ranks that name the process, and the sends to it
	// that no receive has taken. If it is 0, leave knows that none of these need the process.
	// Otherwise it looks at them, because requests of epochs that the rank has left count too.
	awaited atomic.Int32 // requests that wait for it: see Comm.counts

	mu      sync.Mutex
	members []member

	// record also counts: its lock protects the numbers of calls of all sides. So a call takes one
	// lock for both. No other lock is taken while it is held.
	record struct {
		sync.Mutex
		record.Record
	}
}

// member is a side of the process. The pointer is weak, because the process lives as long as the
// job, and closed communicators must not.
type member struct {
	of   weak.Pointer[communicator] // which all sides share, and so the pointer
	rank int
}

// join notes that s is a side of the process. It says whether the process is dead. It holds mu from
// the append to the look at the flags. Leave and die set theirs first and read the members
// afterwards, so they find s, or s finds the flag. If both happen, s is noted twice on the board,
// which does no harm: neither note says that the rank will come.
func (p *process) join(s *Comm) (dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.members) == cap(p.members) { // from time to time, drop those that are gone
		p.members = slices.DeleteFunc(p.members, func(m member) bool { return m.of.Value() == nil })
	}
	p.members = append(p.members, member{weak.Make(s.comm), s.rank})
	if p.absent.Load() { // miss may count it as well, which costs one unneeded look
		s.comm.absent.Add(1)
	}
	if p.left.Load() {
		s.leaves()
	}
	return p.dead.Load()
}

// leave notes that the program has ended. It will send no message that others wait for. It does not
// end the process, which still forwards errors, unless another rank needs it and processes are
// mortal. Where they are not, the requests that need it end with a LeftError instead.
func (p *process) leave(mortal, dies bool) {
	if dies && mortal {
		p.expire()
		return
	}
	// Before awaited is read below. A rank that begins a request first raises awaited and then
	// reads left (see awaits). So at least one of the two sees the other, and looks whether this
	// process has to expire.
	p.left.Store(true)
	for _, s := range p.live() {
		s.leaves()
	}
	// All boards have the note now. A call that comes to one of them later finds there that the
	// rank is absent, and calls owes. Calls that came before are found here.
	if mortal && p.isMissed() {
		p.expire()
		return
	}
	if mortal && p.awaited.Load() > 0 {
		for _, s := range p.live() {
			s.comm.expireIfNeeded(s)
		}
	}
	// Messages of the error channel that this rank has sent may still end a request with an error.
	// Nobody is told that the rank has left before they have arrived.
	p.whenTold(func() {
		p.silent.Store(true)
		p.miss()
		// Read after silent and the counts are set. A request that begins later finds these, and
		// its rank looks for itself (look, Look, owes).
		named := p.awaited.Load() > 0 || p.isMissed()
		for _, s := range p.live() {
			s.comm.endForsaken(named)
		}
	})
}

// leaves notes on the board that the rank makes no more calls.
func (s *Comm) leaves() {
	e, made := s.called()
	b := &s.comm.board
	b.Lock()
	b.Leave(s.rank, e, made)
	b.Unlock()
}

// called returns the rank's epoch, and how many calls it has made there.
func (s *Comm) called() (e transport.Epoch, made int) {
	s.process.record.Lock()
	defer s.process.record.Unlock()
	// Both are of one epoch, because Advance takes the lock too. The board's is never held with it.
	made, _ = s.Matcher.Called()
	return s.Epoch(), made
}

// isMissed says whether calls on a board wait for the process, which has left. Leave must have
// noted the process on all of them before. Where it has released the communicator, Release does all
// else.
func (p *process) isMissed() (missed bool) {
	for _, s := range p.live() {
		missed = missed || !s.released.Load() && s.isMissed()
	}
	return missed
}

// isMissed says whether calls on the board wait for the rank, which leaves has noted there.
func (s *Comm) isMissed() bool {
	b := &s.comm.board
	b.Lock()
	defer b.Unlock()
	return b.IsMissed(s.rank)
}

// owes is called when a call of another rank needs s's, which makes no more calls. The caller holds
// no lock, because both ways may end requests of many ranks.
func (s *Comm) owes(other *Comm) {
	if s.isGone() {
		other.endForsaken()
	} else if s.comm.mortal { // else leave does it
		s.process.expire()
	}
}

// miss counts the process as absent in its communicators. Left and silent, or dead, are set before:
// a rank that sees the count looks at these.
func (p *process) miss() {
	if p.absent.Swap(true) {
		return
	}
	for _, s := range p.live() {
		if !s.released.Load() { // else Release does it
			s.comm.absent.Add(1)
		}
	}
}

// live returns the sides that are in use. The slice keeps them alive while they are visited,
// without mu. A side that joins later looks at the flags itself.
func (p *process) live() []*Comm {
	p.mu.Lock()
	defer p.mu.Unlock()
	sides := make([]*Comm, 0, len(p.members))
	for _, m := range p.members {
		if c := m.of.Value(); c != nil {
			sides = append(sides, &c.sides[m.rank])
		}
	}
	return sides
}

// needs says whether a request of another rank needs s's, in an epoch that s has not left. Requests
// of epochs that it has left end by themselves. One side is locked at a time. A request that is
// posted in a side behind the loop has found left set, and its rank looks after it is posted
// (awaits).
func (c *communicator) needs(s *Comm) (needed bool) {
	rank, epoch := s.rank, s.Epoch()
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

// expireIfNeeded ends the process of s, whose program has ended, if another rank needs it. If it
// has released the communicator, the requests of that rank end instead.
func (c *communicator) expireIfNeeded(s *Comm) {
	if !s.released.Load() && c.needs(s) {
		s.process.expire()
	}
}

// expire ends a process whose program has ended, once everything that it has sent has arrived,
// because others may rely on that.
func (p *process) expire() { p.whenTold(p.die) }

// whenTold calls f once everything that the process has sent has arrived, in all its communicators.
func (p *process) whenTold(f func()) {
	var under atomic.Int32
	// This one is for the loop: f must not be called before all communicators are counted. F runs
	// on the goroutine that counts down last, which holds no lock: this one, or one of a relay.
	under.Store(1)
	arrived := func() {
		if under.Add(-1) == 0 {
			f()
		}
	}
	for _, s := range p.live() {
		under.Add(1)
		s.comm.relay.whenIdle(arrived)
	}
	arrived()
}

// die ends the process in all its communicators. All listeners are told before any request of
// another process ends. Nobody learns of the death while messages that die with the process can be
// received.
func (p *process) die() {
	p.mu.Lock()
	// From here on every request that this process begins ends with ErrDied, and every side that
	// joins finds the death. A request that was let through before is found below, in the side
	// where it waits.
	again := p.dead.Swap(true)
	p.mu.Unlock()
	if again {
		return
	}
	p.miss()
	sides := p.live()
	// Three loops, because the order holds across communicators: see above.
	for _, s := range sides {
		s.comm.dropDead(s.rank)
	}
	for _, s := range sides {
		s.comm.tellDeath(s.rank)
	}
	for _, s := range sides {
		s.comm.endAfterDeath(s.rank)
	}
}

// dropDead notes that a process has died, and ends its sends that no receive has taken. As the mu
// of each side is held after the death, every send that was let through before is listed by then.
func (c *communicator) dropDead(victim int) {
	for i := range c.sides {
		side := &c.sides[i]
		side.mu.Lock()
		// A receive that is posted after this finds the death with the same mu (DeathFor). One that
		// was posted before is found by endAfterDeath, if it still waits then.
		side.Lose(victim)
		side.mu.Unlock()
	}
	// After Lose: a rank that finds the board blind needs the death as the reason (see meet).
	c.board.Lock()
	c.board.Blind()
	c.board.Unlock()
	// Messages that were buffered stay. They had been sent, and a receive that names the dead rank
	// may still take them.
	c.sides[victim].endSends(func(*message) bool { return true }, transport.ErrDied)
}

// tellDeath tells the listeners of c that the process of a rank has died. A listener that comes at
// the same time may be told twice, but not never: Listen reads the deaths with mu after it has set
// attention, and Lose came before this.
func (c *communicator) tellDeath(victim int) {
	for i := range c.sides {
		side := &c.sides[i]
		if side.attention.Load() == listening && (i == victim || !side.process.dead.Load()) {
			side.listener.Died(victim)
		}
	}
}

// endAfterDeath ends the requests in c that a death ends: those of the dead process, those that
// name it, and those of operations of all members.
func (c *communicator) endAfterDeath(victim int) {
	lost := error(&transport.DeadError{Rank: victim})
	why := func(i int) error {
		if i == victim {
			return transport.ErrDied
		}
		return lost
	}
	for i := range c.sides {
		c.sides[i].endIf(func(r *transport.Request) bool { return i == victim || r.Needs(victim) }, why(i))
		c.sides[i].take(func(*transport.Request) bool { return true }, why(i))
		c.sides[i].endLeft(c.sides[i].forsaken) // from AnySource, if the other ranks have released it
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

// end ends the requests of a list with err. The caller has taken them from all queues, has called
// served for them, and holds no lock: Completed may begin operations. List has read the next
// request by the time that one is reused.
func end(list *transport.Request, err error) {
	for r := range match.List(list) {
		r.Err = err
		r.Done.Completed(r)
	}
}

func (s *Comm) Die()            { s.process.die() }
func (s *Comm) Leave(dies bool) { s.process.leave(s.comm.mortal, dies) }

func (s *Comm) HasReturned(rank int) bool {
	q := &s.comm.sides[rank]
	return q.process.left.Load() || q.released.Load()
}

// awaits counts a request that waits for s's rank. It returns false if the rank's process has left:
// the caller then calls expireIfNeeded when it holds no lock.
func (s *Comm) awaits() (stays bool) {
	// The order matters: see leave.
	s.process.awaited.Add(1)
	return !s.comm.mortal || !s.process.left.Load()
}
