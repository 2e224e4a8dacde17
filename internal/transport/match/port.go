package match

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Port matches the messages to one rank of a communicator with the rank's receives and probes, in the
// rank's epoch, until the communicator is revoked.
//
// A Port completes no request. The requests that it returns are in none of its queues any more, so the
// caller can complete them when it holds no lock. The caller holds a lock around all methods except Epoch
// and Live.
type Port[T any] struct {
	// Posted are the waiting receives and probes; their Where is the Port.
	Posted Receives
	// Arrived are the waiting messages. Probed are messages that an Mprobe has taken and no Mrecv has
	// received.
	Arrived, Probed Messages[T]

	// epoch is the rank's epoch. live is the same, but it is no epoch while the rank is halted, and
	// after a revoke, so no request is of it then.
	epoch, live atomic.Uint64
	// cause is why the epoch before live has ended, or why live is no epoch. A lock that protects
	// Barred has to protect Advance and Revoke too.
	cause error
	calls
	// dead are the members that are known to have died, ascending.
	dead []int
}

// revoked is not an epoch: its counts have another sum modulo 4.
const revoked = ^transport.Epoch(0)

// halted is not an epoch either. It is the value of live from Halt to the end of the epoch.
const halted = revoked - 1<<32

// Begin sets the first epoch of a new Port.
func (p *Port[T]) Begin(e transport.Epoch) {
	if e != 0 { // an atomic store costs more than everything else that a new Port needs
		p.live.Store(uint64(e))
		p.epoch.Store(uint64(e))
	}
}

// Epoch returns the epoch that the rank is in.
func (p *Port[T]) Epoch() transport.Epoch { return transport.Epoch(p.epoch.Load()) }

// Live returns the epoch of requests that the rank may begin.
func (p *Port[T]) Live() transport.Epoch { return transport.Epoch(p.live.Load()) }

// Barred returns the error of a request if its epoch is not Live, or nil.
func (p *Port[T]) Barred(r *transport.Request) error {
	if r.Epoch != p.Live() {
		return p.cause
	}
	return nil
}

// IsOver says whether no message of epoch e will ever be received here.
func (p *Port[T]) IsOver(e transport.Epoch) bool {
	live := p.Live()
	return e != live && (live == revoked || live == halted && e == p.Epoch() || e.Stale(p.Epoch()))
}

// Advance begins the epoch after an error of the given generation. It drops the messages of past epochs,
// and returns the list of the receives and probes that end with cause.
func (p *Port[T]) Advance(generation int, cause error) *transport.Request {
	next := p.Epoch().Next(generation)
	p.calls.made = 0
	return p.enter(next, next, cause)
}

// Revoke is Advance to no epoch. All later requests end with the first cause.
func (p *Port[T]) Revoke(cause error) *transport.Request {
	return p.enter(p.Epoch(), revoked, cause)
}

func (p *Port[T]) enter(e, live transport.Epoch, cause error) *transport.Request {
	if p.Live() != revoked {
		p.live.Store(uint64(live)) // before epoch: a goroutine that has read the new epoch finds it live
		p.cause = cause
	}
	p.epoch.Store(uint64(e))
	p.DropIf(func(n *Node[T]) bool { return n.Send == nil && p.IsOver(n.Epoch) })
	return p.TakeIf(func(*transport.Request) bool { return true })
}

// Match returns the oldest message that r matches, or nil. r gets its Status. If r is a receive, the
// message is removed for it; if r is an Mprobe, Redeem returns the message.
func (p *Port[T]) Match(r *transport.Request) *T {
	n := p.Arrived.Find(r)
	if n == nil {
		return nil
	}
	r.Status = n.Status()
	switch r.Kind {
	case transport.Receiving:
		p.Arrived.Remove(n)
	case transport.Mprobing:
		p.Arrived.Remove(n)
		p.Keep(r, n)
	}
	return n.Of
}

// Keep keeps a message that is in no queue for the Mprobe r.
func (p *Port[T]) Keep(r *transport.Request, n *Node[T]) {
	p.Probed.Push(n)
	n.probed, r.Where = true, n
}

// Redeem returns the message of the Mrecv r, which r's Mprobe has taken. If its sender has withdrawn it,
// Redeem returns nil and the error with which r ends. If that error is nil too, r has to wait for one: the
// sender is in another epoch, or has a revoke, and this rank will soon be too. No other message matches r
// from now on.
func (p *Port[T]) Redeem(r *transport.Request) (*T, error) {
	n := r.Where.(*Node[T])
	r.Where, r.Peer, r.Tag, r.Status = nil, n.Source, transport.NoTag, n.Status()
	switch {
	case n.number != 0:
		p.Drop(n)
		return n.Of, nil
	case n.Cancelled:
		return nil, transport.ErrCancelled
	}
	return nil, p.DeathFor(r)
}

// All yields the waiting messages, including those of Mprobes. Messages that it has yielded may be dropped.
func (p *Port[T]) All() iter.Seq[*Node[T]] {
	return func(yield func(*Node[T]) bool) {
		for n := range p.Arrived.All() {
			if !yield(n) {
				return
			}
		}
		p.Probed.All()(yield)
	}
}

// EachUnreceived visits the waiting messages of programs, from living members.
func (p *Port[T]) EachUnreceived(visit func(transport.Status)) {
	for n := range p.All() {
		if n.Epoch == p.Live() && n.Tag >= 0 && !p.HasLost(n.Source) {
			visit(n.Status())
		}
	}
}

// Drop drops a waiting message.
func (p *Port[T]) Drop(n *Node[T]) {
	if n.probed {
		p.Probed.Remove(n)
		n.probed = false
	} else {
		p.Arrived.Remove(n)
	}
}

// Post adds r to the waiting receives and probes.
func (p *Port[T]) Post(r *transport.Request) {
	r.Where = p
	p.Posted.Push(r)
}

// Withdraw removes r from the waiting requests, and says whether it was one.
func (p *Port[T]) Withdraw(r *transport.Request) bool {
	if r.Where != any(p) {
		return false
	}
	p.Posted.Remove(r)
	r.Where = nil
	return true
}

// Take returns the oldest receive or Mprobe that matches a message, or nil, and the list of the matching
// probes before it. They get the message's Status.
func (p *Port[T]) Take(e *Envelope) (probes, recv *transport.Request) {
	for {
		r := p.Posted.Find(e.Key)
		if r == nil {
			return probes, nil
		}
		p.Posted.Remove(r)
		r.Where, r.Status = nil, e.Status()
		if r.Kind != transport.Probing {
			return probes, r
		}
		r.Next, probes = probes, r
	}
}

// TakeIf removes the receives and probes for which which returns true, and returns their list, oldest first.
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

// DropIf drops the messages for which which returns true.
func (p *Port[T]) DropIf(which func(*Node[T]) bool) {
	for n := range p.All() {
		if which(n) {
			p.Drop(n)
		}
	}
}

// Lose notes that a member has died. The caller takes the requests that end because of this by TakeIf.
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

// Looked returns the number of messages and receives that searches have looked at, for tests of their cost.
func (p *Port[T]) Looked() int { return p.Posted.Looked() + p.Arrived.Looked() }

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
