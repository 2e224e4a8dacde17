package node

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// liveness is what this process knows about which processes are dead and which have left, for the
// communicators of one program. A process leaves when its program has ended. A process that has
// left still runs and passes errors on, but it makes no more calls. When another process waits for
// it, it is told so. If processes are mortal it then expires: for the communicators of the program,
// it counts as dead, as if it had been killed. If they are not mortal, the requests that need it
// end with a LeftError. The engine's mu protects it.
type liveness struct {
	// family is the context of the communicator that all others of the program are derived from.
	family contextID
	// dead says which processes are dead: the fabric has reported their death, or they have
	// expired. It never becomes false again.
	dead []bool
	// left says which processes have left. It changes with mu and is read without it.
	left []atomic.Bool
	// absent is the number of processes that are dead or have left. It changes with mu and is
	// read without it.
	absent atomic.Int32
	// expired says that this process has expired. It then begins no requests and drops messages.
	expired bool
}

// livenessOf returns the liveness of a family, and makes it if there is none: other processes may
// have left the family, or died, before this process joins it. Packets name families too, so it may
// be asked for a family that this process never joins.
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

// findDeaths asks the fabric and the heart for deaths, and notes them. Before that it takes the
// packets that the dead have sent. If processes are not mortal, a death ends the job. The report of
// a death may overtake packets of the dead process. These have to be taken first: it sent them
// while it lived, and a receive that one of them matches must not end with the death.
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
	// The list may grow meanwhile, because the heart learns of each death that is noted, and may
	// declare others.
	for h := e.heart; h != nil && len(h.declared) > 0; {
		p := h.declared[0]
		h.declared = h.declared[1:]
		if !e.dead[p] && e.err == nil {
			e.takeDeath(p)
			h.condemn(p)
		}
	}
}

// takeDeath notes the death of a process, after it has taken the last packets from it. It tells the
// listeners and the heart. The order matters: after died, packets of the process are dropped; and
// the heart tells the others of a death only after this process has noted it.
func (e *engine) takeDeath(process int) {
	e.lastOf(process)
	e.died(process)
	if e.heart != nil {
		e.heart.died(process)
	}
}

// died notes the death of a process, for all programs.
func (e *engine) died(process int) {
	e.dead[process] = true
	for _, o := range e.out {
		if o != nil { // it may sleep; if the dead one was ringing, its bell is not armed any more
			o.bell.Wake()
		}
	}
	for _, l := range e.families {
		e.noteDeath(l, process)
	}
	// A claimed offer could not be taken back. The dead process reads no more, so the buffer is
	// free.
	for id, t := range e.offers {
		if t.peer == process { // noteDeath has ended the others: this one is a listener's, or is claimed
			delete(e.offers, id)
			t.dead = true
			e.done(t)
		}
	}
}

// noteDeath notes the death of a process, for one program. It tells the listeners first, and then
// ends the requests that need the dead process. So no program gets an error because of a death of
// which its error channel has not been told. Callbacks keep this order.
func (e *engine) noteDeath(l *liveness, process int) {
	if l.dead[process] {
		return
	}
	l.dead[process] = true
	// A process that has left and then dies counts once.
	if !l.left[process].Load() {
		l.absent.Add(1)
	}
	for _, c := range e.comms {
		if rank := c.rankIn(process); c.liveness == l && rank >= 0 && c.listener != nil {
			e.due = append(e.due, callback{to: c.listener, from: rank, died: true})
		}
	}
	for _, c := range e.comms {
		if rank := c.rankIn(process); c.liveness == l && rank >= 0 {
			c.endAfterDeath(process, rank)
		}
	}
}

// endAfterDeath ends the requests that need the dead member, including those of collective
// operations. If this process is the dead one (it has expired), it ends all requests.
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
	// The bytes of an offer can't come any more. Whole messages stay: they were sent before the
	// death, and may be received.
	c.DropIf(func(n *match.Node[arrival]) bool { return n.Source == rank && n.Of.header.kind == offer })
}

// leave tells all processes that this one has left or, if dies is set and processes are mortal,
// that it has expired. Packets keep their order. So when another process takes this one, it has all
// messages and offers that this process has sent.
func (e *engine) leave(l *liveness, dies bool) {
	if dies && e.mortal {
		e.expire(l)
		return
	}
	e.sendAll(&header{kind: left, to: l.family})
	e.noteLeft(l, e.rank)
}

// sendAll sends a packet to all other living processes.
func (e *engine) sendAll(h *header) {
	for p := range e.size {
		if p != e.rank && !e.dead[p] && e.err == nil {
			e.sendPacket(p, h, nil)
		}
	}
}

// expire makes this process count as dead in one program, here and at all other processes.
func (e *engine) expire(l *liveness) {
	if l.expired {
		return
	}
	// First, so that nothing is sent after the packet that says so.
	l.expired = true
	e.sendAll(&header{kind: dead, to: l.family})
	e.noteDeath(l, e.rank)
}

// needs tells the peer of a request that the request needs it, if the peer is another process that
// has left. It also says which collective call the request belongs to, because the peer may have
// made a different call. A receive from any source needs a peer only if all others have left:
// see lastHope.
func (c *comm) needs(r *transport.Request) {
	switch {
	case c.liveness.absent.Load() == 0:
	case r.Kind == transport.Joining:
		for left := r.Meeting.Missing; left > 0; left &= left - 1 {
			c.needsRank(r, bits.TrailingZeros64(left))
		}
	case r.Peer != transport.AnySource:
		c.needsRank(r, r.Peer)
	case r.IsAwaited():
		c.needsRank(r, c.lastHope())
	}
}

// needsRank is needs for one rank that the request waits for; -1: there is none.
func (c *comm) needsRank(r *transport.Request, peer int) {
	if peer < 0 || peer == c.rank || !c.liveness.left[c.process(peer)].Load() {
		return
	}
	h := header{kind: need, to: c.context, id: uint64(c.liveness.family), epoch: r.Epoch, tag: r.Tag, signature: r.Signature, length: int(c.e.lastID)}
	// The peer compares the older of two equal calls, in which the ranks may differ already: see
	// Before.
	if number, ok := c.WaitsIn(r, c.rank); ok {
		if before := c.Before(r.Epoch, number); before > 0 {
			h.tag = transport.CollectiveTag(before)
		}
	}
	c.e.sendPacket(c.process(peer), &h, nil)
}

// lastHope returns a living member that has left, if all other living members have left too; else
// -1. Only such a member could still send the message that a receive from any source waits for.
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

// Look looks again at the receives from any source. If all other members have left, it tells one of
// them that it is needed. If all others have died, it ends the receives that have acknowledged
// these deaths. It is called in each Wait that blocks, so without absent processes it costs one
// load.
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

// askForAny tells one of the other members that each receive from any source needs it, if all of
// them have left.
func (c *comm) askForAny() {
	// A copy of the queue: a packet that can't be sent makes the engine fail, which empties the
	// queue.
	c.endAny()
	for _, r := range slices.Collect(c.Posted.All()) {
		if r.Peer == transport.AnySource && r.Kind != transport.Joining {
			c.needs(r)
		}
	}
}

// endAny ends the receives from any source that the program waits for if all other members have
// left, died or released the communicator, and one of them has released it.
func (c *comm) endAny() {
	for r := range c.Size() {
		if len(c.gone) == 0 || r != c.rank && !c.gone[r] && !c.HasLost(r) && !c.liveness.left[c.process(r)].Load() {
			return
		}
	}
	c.e.endAll(c.TakeIf(func(r *transport.Request) bool {
		return r.Peer == transport.AnySource && r.Kind != transport.Joining && r.IsAwaited()
	}), &transport.LeftError{Rank: transport.AnySource, Released: true})
}

// noteLeft notes that a process has left, and tells it of the requests that need it. Requests that
// begin later find left set: see needs. Both happen with mu held, so none is missed.
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
			if rank := c.rankIn(process); rank >= 0 && r.WaitsFor(rank) {
				c.needsRank(r, rank)
			}
		}
		for t := range c.moving {
			if t.peer == process && e.offers[t.id] == t {
				c.needs(t.request)
			}
		}
	}
}

// takeLiveness handles a packet that says that its sender has left, has expired, or needs this
// process; or that its sender has left or released a communicator and answers a need. It returns an
// error if no process sends such a packet.
func (e *engine) takeLiveness(source int, h header) error {
	switch {
	case h.kind == dead && !e.mortal:
		return fmt.Errorf("kind %d, where nobody dies", h.kind)
	case h.kind == gone && e.mortal && h.tag == 0:
		return fmt.Errorf("kind %d, where processes die", h.kind)
	}
	// c is nil if this process has closed the communicator, or has never made it, and never will.
	c := e.comms[h.to]
	if (h.kind == need || h.kind == gone) && c != nil && c.rankIn(source) < 0 {
		return fmt.Errorf("kind %d on a communicator that it is not in", h.kind)
	}
	switch h.kind {
	case left:
		e.noteLeft(e.livenessOf(h.to), source)
	case dead:
		e.noteDeath(e.livenessOf(h.to), source)
	case need:
		l := e.families[contextID(h.id)]
		switch {
		case c != nil && h.epoch.Stale(c.Epoch()): // the request will end with its epoch
		case c != nil && c.differs(c.rankIn(source), &h):
		case c != nil && c.isGone(source, &h):
		case l == nil || !l.left[e.rank].Load(): // its program continues
		case e.mortal:
			e.expire(l)
		default:
			e.sendPacket(source, &header{kind: gone, to: h.to, epoch: h.epoch, length: h.length}, nil)
		}
	case gone:
		if c != nil {
			c.endForsaken(c.rankIn(source), &h)
		}
	}
	return nil
}

// isGone says whether this rank has released the communicator and is needed in vain, by a process
// that has sent a need or a reminder. If so, it answers. Calls that it has made continue.
func (c *comm) isGone(process int, h *header) bool {
	made := 0
	if h.epoch == c.Epoch() {
		made, _ = c.Matcher.Called()
	}
	if !c.released || h.epoch.Stale(c.Epoch()) || transport.IsCollective(h.tag) && transport.CollectiveNumber(h.tag) <= made {
		return false
	}
	c.e.sendPacket(process, &header{kind: gone, to: h.to, epoch: h.epoch, tag: transport.CollectiveTag(made), length: h.length}, nil)
	return true
}

// endForsaken ends the requests of an epoch that need a member which has left or released the
// communicator, but not those of calls that it has made before, nor sends that were begun after it
// was asked: a receive may take them. Requests that wait for any source end too if no other member
// can send to them.
func (c *comm) endForsaken(rank int, h *header) {
	released := h.tag != 0
	all := !released && c.lastHope() >= 0
	forsaken := func(r *transport.Request) bool {
		made := released && transport.IsCollective(r.Tag) && transport.CollectiveNumber(r.Tag) <= transport.CollectiveNumber(h.tag)
		if t, sends := r.Where.(*transfer); r.Epoch != h.epoch || sends && t.id > uint64(h.length) {
			return false
		}
		return r.WaitsFor(rank) && !made || all && r.Peer == transport.AnySource && r.IsAwaited()
	}
	for r := range match.List(c.TakeIf(forsaken)) {
		left := r.Peer
		if r.Kind == transport.Joining {
			left = rank
		}
		c.e.end(r, &transport.LeftError{Rank: left, Released: released})
	}
	c.endOffers(&transport.LeftError{Rank: rank, Released: released}, forsaken)
	if released {
		if c.gone == nil {
			c.gone = make(map[int]bool)
		}
		c.gone[rank] = true
		c.endAny()
	}
}
