package match

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Port is where the messages to one rank of a communicator meet its receives and
// probes: those of the rank's epoch, until it is revoked.
//
// A Port completes no request. What it returns is in none of its queues any more, so that
// the caller can complete it when no lock is held. The caller has a lock around all methods
// but Epoch and Live.
type Port[T any] struct {
	// Posted are the receives and probes that wait; their Where is the Port.
	Posted Receives
	// Arrived are the messages that wait.
	Arrived Messages[T]

	// epoch is the rank's. live is the same until the rank is revoked: then no request
	// is of it.
	epoch, live atomic.Uint64
	// cause is why the epoch before live ended. Whoever has a lock around Barred alone has
	// that around Advance and Revoke as well.
	cause error
	// dead are the members that the rank knows to have died, ascending.
	dead []int
}

// revoked is no epoch: such counts have another sum, modulo 4.
const revoked = ^transport.Epoch(0)

// Begin has the rank begin in epoch e. The Port is new.
func (p *Port[T]) Begin(e transport.Epoch) {
	if e != 0 { // an atomic store costs more than all else that a new Port needs
		p.live.Store(uint64(e))
		p.epoch.Store(uint64(e))
	}
}

// Epoch is the epoch that the rank is in.
func (p *Port[T]) Epoch() transport.Epoch { return transport.Epoch(p.epoch.Load()) }

// Live is the epoch of the requests that the rank may begin.
func (p *Port[T]) Live() transport.Epoch { return transport.Epoch(p.live.Load()) }

// Barred returns the error of a request of another epoch than Live, or nil.
func (p *Port[T]) Barred(r *transport.Request) error {
	if r.Epoch != p.Live() {
		return p.cause
	}
	return nil
}

// IsOver says whether no message of epoch e will ever be received here.
func (p *Port[T]) IsOver(e transport.Epoch) bool {
	live := p.Live()
	return e != live && (live == revoked || e.Stale(p.Epoch()))
}

// Advance begins the epoch after an error of the given generation. It drops the messages
// that are over, and returns the list of receives and probes that end with cause.
func (p *Port[T]) Advance(generation int, cause error) *transport.Request {
	next := p.Epoch().Next(generation)
	return p.enter(next, next, cause)
}

// Revoke is Advance to no epoch. The first cause remains that of all requests to come.
func (p *Port[T]) Revoke(cause error) *transport.Request {
	return p.enter(p.Epoch(), revoked, cause)
}

func (p *Port[T]) enter(e, live transport.Epoch, cause error) *transport.Request {
	if p.Live() != revoked {
		p.live.Store(uint64(live)) // first: whoever has read the new epoch finds it live
		p.cause = cause
	}
	p.epoch.Store(uint64(e))
	p.DropIf(func(n *Node[T]) bool { return n.Send == nil && p.IsOver(n.Epoch) })
	return p.TakeIf(func(*transport.Request) bool { return true })
}

// Match returns the oldest message that r is for, or nil. R gets its Status; if r is a
// receive the message is its.
func (p *Port[T]) Match(r *transport.Request) *T {
	n := p.Arrived.Find(r)
	if n == nil {
		return nil
	}
	r.Status = n.Status()
	if r.Kind == transport.Receiving {
		p.Arrived.Remove(n)
	}
	return n.Of
}

// Post has r wait.
func (p *Port[T]) Post(r *transport.Request) {
	r.Where = p
	p.Posted.Push(r)
}

// Withdraw has r wait no more, and says whether it did.
func (p *Port[T]) Withdraw(r *transport.Request) bool {
	if r.Where != any(p) {
		return false
	}
	p.Posted.Remove(r)
	r.Where = nil
	return true
}

// Take returns the oldest receive that a message of so many bytes is for, or nil, and the
// list of the probes before it. They get its Status.
func (p *Port[T]) Take(k Key, bytes int) (probes, recv *transport.Request) {
	for {
		r := p.Posted.Find(k)
		if r == nil {
			return probes, nil
		}
		p.Posted.Remove(r)
		r.Where, r.Status = nil, k.Status(bytes)
		if r.Kind == transport.Receiving {
			return probes, r
		}
		r.Next, probes = probes, r
	}
}

// TakeIf returns the list of the receives and probes that which holds for, oldest first.
func (p *Port[T]) TakeIf(which func(*transport.Request) bool) (list *transport.Request) {
	last := &list
	for r := range p.Posted.All() {
		if which(r) {
			p.Withdraw(r)
			*last, last = r, &r.Next
		}
	}
	return list
}

// DropIf drops the messages that which holds for.
func (p *Port[T]) DropIf(which func(*Node[T]) bool) {
	for n := range p.Arrived.All() {
		if which(n) {
			p.Arrived.Remove(n)
		}
	}
}

// Lose notes that a member has died. TakeIf returns what ends with that.
func (p *Port[T]) Lose(rank int) {
	if i, known := slices.BinarySearch(p.dead, rank); !known {
		p.dead = slices.Insert(p.dead, i, rank)
	}
}

// Dead returns the members that are known to have died, ascending.
func (p *Port[T]) Dead() []int { return slices.Clone(p.dead) }

// HasLostAny says whether members are known to have died.
func (p *Port[T]) HasLostAny() bool { return len(p.dead) > 0 }

// HasLost says whether a member is known to have died.
func (p *Port[T]) HasLost(rank int) bool {
	_, known := slices.BinarySearch(p.dead, rank)
	return known
}

// IsAlone says whether all members but rank, of several, are known to have died.
func (p *Port[T]) IsAlone(rank, size int) bool {
	others := len(p.dead)
	if p.HasLost(rank) {
		others--
	}
	return size > 1 && others == size-1
}

// DeathFor returns the error of a request that needs a member that has died, or nil.
func (p *Port[T]) DeathFor(r *transport.Request) error {
	switch {
	case len(p.dead) == 0:
	case r.Peer >= 0 && p.HasLost(r.Peer):
		return &transport.DeadError{Rank: r.Peer}
	case transport.IsCollective(r.Tag):
		return &transport.DeadError{Rank: p.dead[0]}
	}
	return nil
}

// Looked is how many messages and receives were looked at to match others, for tests of
// what that costs.
func (p *Port[T]) Looked() int { return p.Posted.Looked() + p.Arrived.Looked() }

// List yields the requests of a list, which it takes apart: each may be used again.
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
