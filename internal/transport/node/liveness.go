package node

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// liveness is this process's knowledge of which processes have left and which are dead, for the
// communicators of one program. If processes are mortal, the fabric reports deaths. A process that has
// left lives on and passes errors on, but has no call under way. When another process needs it, it expires:
// it is dead for the others, as if it had been killed. If processes are not mortal, the requests end that need
// it. The engine's mu protects it.
type liveness struct {
	family  contextID     // of the communicator that all others of the program are derived from
	dead    []bool        // by process
	left    []atomic.Bool // by process; read without mu
	absent  atomic.Int32  // number of processes that are dead or have left; read without mu
	expired bool          // this process is dead for the others
}

// livenessOf returns the liveness of a family. Other processes may have left it or died before this
// process begins.
func (e *engine) livenessOf(family contextID) *liveness {
	l := e.families[family]
	if l == nil {
		l = &liveness{family: family, dead: slices.Clone(e.dead), left: make([]atomic.Bool, e.size)}
		for _, dead := range l.dead {
			if dead {
				l.absent.Add(1)
			}
		}
		e.families[family] = l
	}
	return l
}

// findDeaths asks the fabric for deaths, and takes the packets that the dead had sent before.
func (e *engine) findDeaths() {
	dead, err := e.fabric.Failed()
	for n, last := 0, false; err == nil && e.mortal && !last && n < lastPackets; n++ {
		moved, died := e.fabric.Poll((*Sink)(e), max(mixed, e.size))
		if died {
			dead, err = e.fabric.Failed()
		}
		last = !moved && !died
	}
	if err != nil {
		e.fail(err)
		return
	}
	for _, p := range dead {
		switch {
		case !e.mortal:
			e.fail(&transport.JobEndedError{Process: p})
			return
		case !e.dead[p] && e.err == nil:
			e.takeDeath(p)
		}
	}
	for h := e.heart; h != nil && len(h.declared) > 0; {
		p := h.declared[0]
		h.declared = h.declared[1:]
		if !e.dead[p] && e.err == nil {
			e.takeDeath(p)
			h.condemn(p)
		}
	}
}

// takeDeath notes a death, and tells it to all listeners.
func (e *engine) takeDeath(process int) {
	e.lastOf(process)
	e.died(process)
	if e.heart != nil {
		e.heart.died(process)
	}
}

// died notes that the fabric has reported a process as dead.
func (e *engine) died(process int) {
	e.dead[process] = true
	e.losses++
	for _, l := range e.families {
		e.noteDeath(l, process)
	}
	for id, t := range e.offers {
		if t.peer == process { // it was a listener's, or is being read
			delete(e.offers, id)
			t.dead = true
			e.done(t)
		}
	}
}

// noteDeath tells the listeners of a death, and then ends the requests that need the dead.
func (e *engine) noteDeath(l *liveness, process int) {
	if l.dead[process] {
		return
	}
	l.dead[process] = true
	if !l.left[process].Load() {
		l.absent.Add(1)
	}
	for _, c := range e.comms {
		if rank := c.rankIn(process); c.liveness == l && rank >= 0 && c.listener != nil {
			e.news = append(e.news, news{to: c.listener, from: rank, died: true})
		}
	}
	for _, c := range e.comms {
		if rank := c.rankIn(process); c.liveness == l && rank >= 0 {
			c.endAfterDeath(process, rank)
		}
	}
}

// endAfterDeath ends the requests that need the dead member, including those of collective operations. If
// this process is the dead one, it ends all requests.
func (c *comm) endAfterDeath(process, rank int) {
	c.Lose(rank)
	self := process == c.e.rank
	cause := error(&transport.DeadError{Rank: rank})
	if self {
		cause = transport.ErrDied
	}
	needed := func(r *transport.Request) bool { return self || r.Needs(rank) }
	c.e.endAll(c.TakeIf(needed), cause)
	c.endOffers(cause, needed)
	c.DropIf(func(n *match.Node[arrival]) bool { return n.Source == rank && n.Of.header.kind == offer })
}

// leave tells all processes that this one has left.
func (e *engine) leave(l *liveness, dies bool) {
	if dies && e.mortal {
		e.expire(l)
		return
	}
	e.sendAll(&header{kind: left, to: l.family})
	e.noteLeft(l, e.rank)
}

// sendAll sends a packet to all other processes.
func (e *engine) sendAll(h *header) {
	for p := range e.size {
		if p != e.rank && !e.dead[p] && e.err == nil {
			e.sendPacket(p, h, nil)
		}
	}
}

// expire makes this process dead for the others.
func (e *engine) expire(l *liveness) {
	if l.expired {
		return
	}
	l.expired = true
	e.sendAll(&header{kind: dead, to: l.family})
	e.noteDeath(l, e.rank)
}

// needs tells the peer of a request that it is needed, if the peer's program has ended and it is another
// process. It says in which call, because the peer may have made another one.
func (c *comm) needs(r *transport.Request) {
	peer := r.Peer
	if peer == transport.AnySource && r.IsAwaited() {
		peer = c.lastHope()
	}
	if peer < 0 || peer == c.rank || !c.liveness.left[c.process(peer)].Load() {
		return
	}
	h := header{kind: need, to: c.context, id: uint64(c.liveness.family), epoch: r.Epoch, tag: r.Tag, signature: r.Signature}
	if number, ok := c.WaitsIn(r, c.rank); ok {
		if before := c.Before(r.Epoch, number); before > 0 {
			h.tag = transport.CollectiveTag(before)
		}
	}
	c.e.sendPacket(c.process(peer), &h, nil)
}

// lastHope returns a member whose program has ended, if the programs of all other members have ended too;
// else -1.
func (c *comm) lastHope() int {
	hope := -1
	for r := range c.Size() {
		switch p := c.process(r); {
		case r == c.rank || c.HasLost(r):
		case !c.liveness.left[p].Load():
			return -1
		case hope < 0:
			hope = r
		}
	}
	return hope
}

// Look tells ranks that have left that this rank waits for them.
func (c *comm) Look() {
	if c.liveness.absent.Load() > 0 {
		c.e.lock()
		c.askForAny()
		c.e.endAll(c.TakeIf(func(r *transport.Request) bool {
			return c.IsAlone(c.rank, c.Size()) && r.Peer == transport.AnySource && r.IsAwaited() && r.HasAcknowledged()
		}), &transport.DeadError{Rank: transport.AnySource})
		c.e.unlock()
	}
}

// askForAny tells one of the members, all of which have left, that a receive needs them.
func (c *comm) askForAny() {
	for _, r := range slices.Collect(c.Posted.All()) {
		if r.Peer == transport.AnySource {
			c.needs(r)
		}
	}
}

// noteLeft notes that a process has left, and tells it which requests need it.
func (e *engine) noteLeft(l *liveness, process int) {
	if !l.left[process].Load() {
		l.left[process].Store(true)
		if !l.dead[process] {
			l.absent.Add(1)
		}
	}
	for _, c := range e.comms {
		if c.liveness != l {
			continue
		}
		c.askForAny()
		for _, r := range slices.Collect(c.Posted.All()) {
			if r.Peer >= 0 && c.process(r.Peer) == process {
				c.needs(r)
			}
		}
		for t := range c.moving {
			if t.peer == process && e.offers[t.id] == t {
				c.needs(t.request)
			}
		}
	}
}

// takeLiveness takes a packet that says that a process has left, died or is needed.
func (e *engine) takeLiveness(source int, h header) error {
	switch {
	case h.kind == dead && !e.mortal:
		return fmt.Errorf("kind %d, where nobody dies", h.kind)
	case h.kind == gone && e.mortal:
		return fmt.Errorf("kind %d, where processes die", h.kind)
	}
	switch h.kind {
	case left:
		e.noteLeft(e.livenessOf(h.to), source)
	case dead:
		e.noteDeath(e.livenessOf(h.to), source)
	case need:
		c := e.comms[h.to]
		switch {
		case c != nil && c.rankIn(source) < 0:
			return fmt.Errorf("a need on a communicator that it is not in")
		case c != nil && h.epoch.Stale(c.Epoch()): // it has left the epoch: the request will end by itself
		case c != nil && c.differs(c.rankIn(source), &h):
		case e.mortal:
			e.expire(e.livenessOf(contextID(h.id)))
		default:
			e.sendPacket(source, &header{kind: gone, to: h.to, epoch: h.epoch}, nil)
		}
	case gone:
		if c := e.comms[h.to]; c != nil {
			c.endForsaken(c.rankIn(source), h.epoch)
		}
	}
	return nil
}

// endForsaken ends the requests of an epoch that need a member which has left.
func (c *comm) endForsaken(rank int, e transport.Epoch) {
	all := c.lastHope() >= 0
	forsaken := func(r *transport.Request) bool {
		return r.Epoch == e && (r.Peer == rank || all && r.Peer == transport.AnySource && r.IsAwaited())
	}
	for r := range match.List(c.TakeIf(forsaken)) {
		c.e.end(r, &transport.LeftError{Rank: r.Peer})
	}
	c.endOffers(&transport.LeftError{Rank: rank}, forsaken)
}
