package match

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Matcher matches the messages to one rank of a communicator with the rank's receives and probes,
// in the rank's epoch, until the communicator is revoked.
//
// A Matcher completes no request. The requests that it returns are in none of its queues any more,
// so the caller can complete them when it holds no lock. The caller holds a lock around all methods
// except Epoch and Live. Count and Called may have a lock of their own, which is then held around
// Advance, too.
type Matcher[T any] struct {
	// Posted are the waiting receives and probes; their Where is the Matcher.
	Posted Receives
	// Arrived are the waiting messages. Probed are messages that an Mprobe has taken and no Mrecv
	// has received.
	Arrived, Probed Messages[T]
	// Discarded, if not nil, is called with each message that is dropped because its epoch is over.
	Discarded func(*T)

	// epoch is the rank's epoch. live is the same, but it is no epoch while the rank is halted, and
	// after a revoke, so no request is of it then.
	epoch, live atomic.Uint64
	// cause is why the epoch before live has ended, or why live is no epoch. A lock that protects
	// Barred has to protect Advance and Revoke too. Live is also read without a lock and changes
	// first, so cause belongs to it only under the lock.
	cause error
	calls
	// dead are the members that are known to have died, ascending. A death is final, so it lasts
	// across epochs.
	dead []int
}

// revoked is not an epoch: its counts have another sum modulo 4.
const revoked = ^transport.Epoch(0)

// halted is not an epoch either. Live returns it from Halt until the end of the epoch.
const halted = revoked - 1<<32

// Begin sets the first epoch of a new Matcher.
func (m *Matcher[T]) Begin(e transport.Epoch) {
	if e != 0 { // an atomic store costs more than everything else that a new Matcher needs
		m.live.Store(uint64(e))
		m.epoch.Store(uint64(e))
	}
}

// Epoch returns the epoch that the rank is in.
func (m *Matcher[T]) Epoch() transport.Epoch { return transport.Epoch(m.epoch.Load()) }

// Live returns the epoch of requests that the rank may begin.
func (m *Matcher[T]) Live() transport.Epoch { return transport.Epoch(m.live.Load()) }

// Barred returns the error of a request if its epoch is not Live, or nil.
func (m *Matcher[T]) Barred(r *transport.Request) error {
	if r.Epoch != m.Live() {
		return m.cause
	}
	return nil
}

// IsOver says whether no message of epoch e will ever be received here. After a Revoke that is
// every epoch. While the rank is halted that is also the epoch that it is in, but no later one:
// messages of ranks that have gone ahead wait for the next epoch, in which this rank takes part
// again (M3).
func (m *Matcher[T]) IsOver(e transport.Epoch) bool {
	live := m.Live()
	return e != live && (live == revoked || live == halted && e == m.Epoch() || e.Stale(m.Epoch()))
}

// Advance begins the epoch after an error of the given generation. It drops the messages of past
// epochs, and returns the list of the receives and probes that end with cause.
func (m *Matcher[T]) Advance(generation int, cause error) *transport.Request {
	next := m.Epoch().Next(generation)
	m.calls.made = 0
	return m.enter(next, next, cause)
}

// Revoke is Advance to no epoch. All later requests end with the first cause.
func (m *Matcher[T]) Revoke(cause error) *transport.Request {
	return m.enter(m.Epoch(), revoked, cause)
}

// enter sets the epoch and live. It drops the messages of past epochs, and returns the list of all
// receives and probes, which end with cause. After a Revoke, live and cause do not change any more.
func (m *Matcher[T]) enter(e, live transport.Epoch, cause error) *transport.Request {
	if m.Live() != revoked {
		m.live.Store(uint64(live)) // before epoch: a goroutine that has read the new epoch finds it live
		m.cause = cause
	}
	m.epoch.Store(uint64(e))
	// A message with a Send lends the sender's buffer, and its sender ends it when it leaves the
	// epoch itself. No receive finds it meanwhile, because of its epoch (P3).
	m.DropIf(func(n *Node[T]) bool {
		over := n.Send == nil && m.IsOver(n.Epoch)
		if over && m.Discarded != nil {
			m.Discarded(n.Of)
		}
		return over
	})
	// All, because only requests of the live epoch are posted, and that has just ended (P4).
	return m.TakeIf(func(*transport.Request) bool { return true })
}

// Match returns the oldest message that r matches, or nil. r gets its Status. If r is a receive,
// the message is removed for it; if r is an Mprobe, Redeem returns the message. A call that meets
// others gets the messages of its ranks one by one.
func (m *Matcher[T]) Match(r *transport.Request) *T {
	n := m.Arrived.Find(r)
	if n == nil {
		return nil
	}
	r.Status = n.Status()
	// A Probe leaves the message where it is.
	switch r.Kind {
	case transport.Receiving, transport.Joining:
		m.Arrived.Remove(n)
	case transport.Mprobing:
		m.Arrived.Remove(n)
		m.Keep(r, n)
	}
	return n.Of
}

// Keep keeps a message that is in no queue for the Mprobe r.
func (m *Matcher[T]) Keep(r *transport.Request, n *Node[T]) {
	m.Probed.Push(n)
	n.probed, r.Where = true, n
}

// Redeem returns the message of the Mrecv r, which r's Mprobe has taken. If its sender has
// withdrawn it, Redeem returns nil and the error with which r ends. If that error is nil too, r has
// to be posted: the sender has moved to another epoch or has been told of a revoke. This rank will
// follow, and that ends r. No other message matches r from now on.
func (m *Matcher[T]) Redeem(r *transport.Request) (*T, error) {
	n := r.Where.(*Node[T])
	// Peer is set so that the death of the sender ends r if r is posted.
	r.Where, r.Peer, r.Tag, r.Status = nil, n.Source, transport.NoTag, n.Status()
	switch {
	case n.number != 0:
		m.Drop(n)
		return n.Of, nil
	case n.Cancelled:
		return nil, transport.ErrCancelled
	}
	return nil, m.DeathFor(r)
}

// All yields the waiting messages, including those of Mprobes. Messages that it has yielded may be
// dropped.
func (m *Matcher[T]) All() iter.Seq[*Node[T]] {
	return func(yield func(*Node[T]) bool) {
		for n := range m.Arrived.All() {
			if !yield(n) {
				return
			}
		}
		m.Probed.All()(yield)
	}
}

// EachUnreceived visits the waiting messages of programs, from living members.
func (m *Matcher[T]) EachUnreceived(visit func(transport.Status)) {
	for n := range m.All() {
		if n.Epoch == m.Live() && n.Tag >= 0 && !m.HasLost(n.Source) {
			visit(n.Status())
		}
	}
}

// Drop drops a waiting message.
func (m *Matcher[T]) Drop(n *Node[T]) {
	if n.probed {
		m.Probed.Remove(n)
		n.probed = false
	} else {
		m.Arrived.Remove(n)
	}
}

// Post adds r to the waiting receives and probes.
func (m *Matcher[T]) Post(r *transport.Request) {
	r.Where = m
	m.Posted.Push(r)
}

// Waits says whether r is one of the waiting receives and probes.
func (m *Matcher[T]) Waits(r *transport.Request) bool { return r.Where == any(m) }

// Withdraw removes r from the waiting requests, and says whether it was one. If it was not, r is
// some other goroutine's to end, or has ended.
func (m *Matcher[T]) Withdraw(r *transport.Request) bool {
	if !m.Waits(r) {
		return false
	}
	m.Posted.Remove(r)
	r.Where = nil
	return true
}

// Take returns the oldest receive or Mprobe that matches a message, or nil, and the list of the
// matching probes before it. They get the message's Status.
func (m *Matcher[T]) Take(e *Envelope) (probes, recv *transport.Request) {
	for {
		r := m.Posted.Find(e.Key)
		if r == nil {
			return probes, nil
		}
		m.Posted.Remove(r)
		r.Where, r.Status = nil, e.Status()
		if r.Kind != transport.Probing {
			return probes, r
		}
		// r is out of the queue, so its links are free for a list of requests that end.
		r.Next, probes = probes, r
	}
}

// TakeIf removes the receives and probes for which which returns true, and returns their list,
// oldest first.
func (m *Matcher[T]) TakeIf(which func(*transport.Request) bool) (list *transport.Request) {
	last := &list
	for r := range m.Posted.All() {
		if which(r) {
			m.Withdraw(r)
			*last, last = r, &r.Next
		}
	}
	return list
}

// DropIf drops the messages for which which returns true.
func (m *Matcher[T]) DropIf(which func(*Node[T]) bool) {
	for n := range m.All() {
		if which(n) {
			m.Drop(n)
		}
	}
}

// Lose notes that a member has died. The caller takes the requests that end because of this by
// TakeIf.
func (m *Matcher[T]) Lose(rank int) {
	if i, known := slices.BinarySearch(m.dead, rank); !known {
		m.dead = slices.Insert(m.dead, i, rank)
	}
}

// Dead returns the members that are known to have died, ascending.
func (m *Matcher[T]) Dead() []int { return slices.Clone(m.dead) }

// HasLostAny says whether members are known to have died.
func (m *Matcher[T]) HasLostAny() bool { return len(m.dead) > 0 }

// HasLost says whether a member is known to have died.
func (m *Matcher[T]) HasLost(rank int) bool {
	_, known := slices.BinarySearch(m.dead, rank)
	return known
}

// IsAlone says whether all members but rank, of several, are known to have died.
func (m *Matcher[T]) IsAlone(rank, size int) bool {
	others := len(m.dead)
	if m.HasLost(rank) {
		others--
	}
	return size > 1 && others == size-1
}

// DeathFor returns the error of a request that needs a member that has died, or nil.
func (m *Matcher[T]) DeathFor(r *transport.Request) error {
	switch {
	case len(m.dead) == 0:
	case r.Peer >= 0 && m.HasLost(r.Peer):
		return &transport.DeadError{Rank: r.Peer}
	case transport.IsCollective(r.Tag):
		return &transport.DeadError{Rank: m.dead[0]}
	}
	return nil
}

// List yields the requests of a list. It takes the list apart, so each request may be reused.
func List(r *transport.Request) iter.Seq[*transport.Request] {
	return func(yield func(*transport.Request) bool) {
		for r != nil {
			next := r.Next
			r.Next = nil
			if !yield(r) {
				return
			}
			r = next
		}
	}
}
