package local

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/board"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A communicator is what all its ranks share.
type communicator struct {
	mortal bool   // processes may die
	id     uint64 // see ID
	// Sides and their processes never change, so they are read without a lock. A rank that uses one
	// side keeps all of them alive.
	sides []Comm
	relay relay
	board board.Board
	// absent counts the members that have left, released it or died; one may count twice. Released
	// says that one has released it, and is set before.
	absent   atomic.Int32
	released atomic.Bool

	// mu guards subs, and which members are missing in each. A new communicator is made with the mu
	// of its parent, so mu comes before all other locks here (see Comm).
	mu   sync.Mutex
	subs map[transport.Name]*sub
}

// sub is a communicator that some of its members have made, and others may still make.
type sub struct {
	*communicator
	missing []bool // which members, by their ranks in the parent
	count   int    // number of missing members
	ranks   []int  // the members' ranks here, by those in the parent; nil: the same
}

// settle notes that a rank has made s or never will. It says whether no rank is missing now. The
// caller holds the mu of the parent. A rank may be settled more than once: by its own Sub, by
// forget, and by its death.
func (s *sub) settle(rank int) bool {
	if s.missing[rank] {
		s.missing[rank] = false
		s.count--
	}
	return s.count == 0
}

// New returns the sides of a communicator of n ranks.
func New(n int) []*Comm { return newJob(n, false) }

// NewMortal is New for ranks that see each other die, as processes do. A receive takes some
// nanoseconds more.
func NewMortal(n int) []*Comm { return newJob(n, true) }

func newJob(n int, mortal bool) []*Comm {
	processes, b := make([]process, n), &busy{relays: make(map[*relay]struct{})}
	for i := range processes {
		processes[i].busy = b
	}
	c := newCommunicator(mortal, 1, n, 0, func(i int) *process { return &processes[i] })
	sides := make([]*Comm, n)
	for i := range sides {
		sides[i] = &c.sides[i]
	}
	return sides
}

func newCommunicator(mortal bool, id uint64, n int, e transport.Epoch, member func(int) *process) *communicator {
	c := &communicator{mortal: mortal, id: id, sides: make([]Comm, n)}
	// No rank uses the new communicator yet. But deaths and leaves reach a side as soon as it has
	// joined, and then visit all others. So all sides are complete before the first of them joins.
	c.board.Open(n, e)
	c.relay.busy = member(0).busy
	for i := range c.sides {
		s := &c.sides[i]
		s.comm, s.process, s.rank = c, member(i), i
		s.Begin(e)
	}
	// A process may die meanwhile. It either finds this side among its members, or join says that
	// it is dead. Both hold the process's mu.
	for i := range c.sides {
		if p := c.sides[i].process; p.join(&c.sides[i]) {
			c.dropDead(i)
			c.tellDeath(i)
			c.endAfterDeath(i)
		}
	}
	return c
}

func (s *Comm) Rank() int       { return s.rank }
func (s *Comm) Size() int       { return len(s.comm.sides) }
func (s *Comm) Machine(int) int { return 0 } // all ranks are on one machine

func (s *Comm) Features() transport.Features {
	return transport.Features{Name: "local", SharedCores: true, Board: math.MaxInt, Deaths: s.comm.mortal}
}

// Sub completes at once. The members share memory: the first one makes the communicator, and the
// others find it by its name. It is found or made under one hold of the parent's mu, so there is
// only one of a name.
func (s *Comm) Sub(name transport.Name, members []int) (transport.Comm, error) {
	if err := name.Check(); err != nil {
		return nil, err
	}
	parent := s.comm
	n := len(parent.sides)
	if members != nil {
		n = len(members)
	}
	parent.mu.Lock()
	made := parent.subs[name]
	if made == nil {
		if parent.subs == nil {
			parent.subs = make(map[transport.Name]*sub)
		}
		rankOf := func(i int) int {
			if members == nil {
				return i
			}
			return members[i]
		}
		c := newCommunicator(parent.mortal, name.Digest(parent.id), n, name.Epoch, func(i int) *process { return parent.sides[rankOf(i)].process })
		made = &sub{communicator: c, missing: make([]bool, len(parent.sides)), count: n}
		if members != nil {
			made.ranks = make([]int, len(parent.sides))
		}
		for i := range n {
			made.missing[rankOf(i)] = true
			if members != nil {
				made.ranks[members[i]] = i
			}
		}
		// A process that dies later finds made in subs: it is dead before it looks there, with
		// parent.mu.
		for i := range parent.sides {
			if parent.sides[i].process.dead.Load() {
				made.settle(i)
			}
		}
		parent.subs[name] = made
	}
	// When nobody is missing nobody looks for the name again, and the parent need not keep the
	// communicator alive.
	if made.settle(s.rank) {
		delete(parent.subs, name)
	}
	parent.mu.Unlock()
	rank := s.rank
	if made.ranks != nil { // many ranks find theirs, which one has looked up
		rank = made.ranks[rank]
	}
	return &made.sides[rank], nil
}

// forget notes that a rank in epoch e will make no communicator named in an earlier epoch. Others
// may still make it, and then share it with those that have. Without this, an error that keeps a
// member from its Sub would leave the communicator in memory as long as its parent.
func (c *communicator) forget(rank int, e transport.Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range c.subs {
		if name.Epoch.Stale(e) && s.settle(rank) {
			delete(c.subs, name)
		}
	}
}

// Close has nothing to release: the garbage collector frees a communicator once no rank refers to
// it. Only this side's listener hears nothing more: other ranks may still use theirs.
func (s *Comm) Close() error {
	s.attention.Store(closed)
	return nil
}

// Advance moves this rank to the next epoch.
func (s *Comm) Advance(generation int, cause error) {
	// Forget comes second: it compares names with the epoch that the rank is in now, and needs no
	// lock of the side.
	s.endAll(func() *transport.Request {
		s.process.record.Lock() // the numbers of calls begin again
		defer s.process.record.Unlock()
		return s.Matcher.Advance(generation, cause)
	}, cause)
	s.comm.forget(s.rank, s.Epoch())
}

// Revoke ends all requests of this rank. The epoch stays, so nothing is forgotten.
func (s *Comm) Revoke(cause error) {
	s.endAll(func() *transport.Request { return s.Matcher.Revoke(cause) }, cause)
}

// endAll calls leave, and ends with cause the requests that are over then.
func (s *Comm) endAll(leave func() *transport.Request, cause error) {
	// The epoch changes under both locks. Receives of this rank are posted with mu; its sends are
	// listed with sending.mu, while another side's mu is held. Whichever comes first, each request
	// of the old epoch is in a list, or finds that its epoch is over.
	s.mu.Lock()
	s.sending.mu.Lock()
	posted := leave()
	s.sending.mu.Unlock()
	s.mu.Unlock()
	// The ends come last, without locks, because what they tell may begin operations. Nothing of
	// the old epoch is added any more. Requests on the board are looked for with the board's lock
	// after Live has changed, for the reason in meet.
	s.served(posted)
	// Listed messages of other ranks stay here until their senders end them; no receive finds
	// them. This rank's own listed sends end now.
	s.endSends(func(m *message) bool { return s.IsOver(m.Epoch) }, cause)
	s.take(func(r *transport.Request) bool { return s.IsOver(r.Epoch) }, cause)
	end(posted, cause)
}

// Quiesce calls then when what other goroutines do with this rank's buffers is done.
func (s *Comm) Quiesce(then func()) { s.working.whenQuiet(then) }

// EachPending visits this rank's requests, which wait in its own side, in others, and on the board.
// Each is visited with the lock under which it would be taken, so it can't end meanwhile. The locks
// are held one after the other: no two sides may be locked at once, and requests do not move.
func (s *Comm) EachPending(visit func(*transport.Request)) {
	s.mu.Lock()
	for r := range s.Posted.All() {
		visit(r)
	}
	s.mu.Unlock()
	b := &s.comm.board
	b.Lock()
	// Nothing on the board is matched by its Peer, so that is free to say which rank it waits for.
	for r := range b.All(s.rank) {
		r.Peer = b.Awaited(r)
		visit(r)
	}
	b.Unlock()
	// A receive may have taken the message since it was listed. Its Send is then nil.
	for _, m := range s.listed() {
		to := &s.comm.sides[m.dest]
		to.mu.Lock()
		if m.Send != nil {
			visit(m.Send)
		}
		to.mu.Unlock()
	}
}

// Kept returns the number of messages to this rank that wait for receives.
func (s *Comm) Kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Arrived.Len() + s.Probed.Len()
}

// EachUnreceived visits the messages that wait in this rank's queue.
func (s *Comm) EachUnreceived(visit func(transport.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Matcher.EachUnreceived(visit)
}
