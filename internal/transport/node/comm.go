package node

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Messages of at most this length are eager: their bytes are in the packet of their header. The
// limit is nearLimit through a ring, and farLimit through the fabric. To another machine it is the
// engine's far, which may be greater, because an offer there takes as long as such a message.
const (
	farLimit  = 3968
	nearLimit = 8192
)

// comm is this process's side of a communicator. The engine's mu protects it. The epochs of the
// Matcher change with mu, and are read without it. Package transport documents the methods of its
// interfaces.
type comm struct {
	e        *engine
	context  contextID
	liveness *liveness // of the program that the communicator belongs to
	rank     int
	members  []int       // the members' processes, by rank; nil: each rank's process is the rank
	rankOf   map[int]int // by process: the member's rank; nil if members is

	match.Matcher[arrival]
	// moving are the transfers of requests, from the offer or its acceptance until they end. The
	// request of each has the transfer as its Where.
	moving map[*transfer]struct{}
	ahead  ahead

	// released says that this rank has released the communicator. Gone are the members that have
	// said so.
	released bool
	gone     map[int]bool

	reminding reminding
	needing   reminding   // of operations of the program that are no collective calls
	onFailure func(error) // called when the engine has failed; nil: nothing is called

	listener transport.Listener // nil: not yet, or no longer
	// inbox are the messages for the listener, in order. The first of them is an offer whose bytes
	// have not come, or there is no listener yet.
	inbox []*arrival
	// asking says that a goroutine is in Poke, and asks the listener for messages to send. askAgain
	// says that Poke was called since the goroutine asked last, or before there was a listener.
	asking, askAgain bool
}

var (
	_ transport.Board   = (*comm)(nil)
	_ transport.Driver  = (*comm)(nil)
	_ transport.Starter = (*comm)(nil)
)

// newComm makes a communicator, and delivers the messages that came before it was made.
func (e *engine) newComm(id contextID, l *liveness, rank int, members []int, epoch transport.Epoch) *comm {
	c := &comm{e: e, context: id, liveness: l, rank: rank, members: members, moving: make(map[*transfer]struct{})}
	c.Begin(epoch)
	c.Discarded = e.discarded
	if members != nil {
		c.rankOf = make(map[int]int, len(members))
		for i, r := range members {
			c.rankOf[r] = i
		}
	}
	// From here on packets find c. But mu is held until newComm has returned, so none comes before
	// the early messages below, and the order of each sender's messages is kept (F5).
	e.comms[id] = c
	// Deaths that were noted before c was made are noted here, others by noteDeath, which finds c
	// in comms.
	for p, died := range l.dead {
		if rank := c.rankIn(p); died && rank >= 0 {
			c.Lose(rank)
		}
	}
	early := e.early[id]
	delete(e.early, id)
	for _, a := range early { // they came before their senders died, if these have
		// Its bytes can't come any more. It is the same in endAfterDeath.
		if a.header.kind == offer && l.dead[a.source] {
			continue
		}
		if err := c.add(a); err != nil {
			e.garbage(a.source, err)
		}
	}
	return c
}

func (c *comm) Rank() int { return c.rank }

func (c *comm) Size() int {
	if c.members == nil {
		return c.e.size
	}
	return len(c.members)
}

func (c *comm) Machine(rank int) int { return c.e.machines[c.process(rank)] }

// process returns the process of a rank. Members never change, so it needs no lock.
func (c *comm) process(rank int) int {
	if c.members == nil {
		return rank
	}
	return c.members[rank]
}

func (c *comm) Features() transport.Features {
	return transport.Features{Name: c.e.name, Deaths: c.e.mortal, Board: c.board()}
}

func (c *comm) Await(w waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	return c.e.await(w, ended)
}

func (c *comm) Glance() { c.e.glance() }

func (c *comm) Reason(ctx context.Context, rank int) string {
	if c.e.reason == nil {
		return ""
	}
	return c.e.reason(ctx, c.process(rank))
}

func (c *comm) Failed() error {
	if !c.e.over.Load() {
		return nil
	}
	// Without an error this is all: err is read with mu, and only after over is set.
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.e.err
}

// OnFailure holds mu from the assignment to the look at err. So either fail finds told, or told is
// called here.
func (c *comm) OnFailure(told func(error)) {
	c.e.lock()
	defer c.e.unlock()
	c.onFailure = told
	if c.e.err != nil {
		c.tellFailure()
	}
}

func (c *comm) Watch(n int) {
	c.e.watched.Add(int32(n))
	// It may be the first goroutine that waits. The goroutine of goOn then sleeps for a period, in
	// which nothing moves, unless it is called.
	if n > 0 {
		c.e.call()
	}
}

// rankIn returns the rank of a process, or -1 if it is not a member.
func (c *comm) rankIn(process int) int {
	if c.members == nil {
		return process
	}
	if rank, ok := c.rankOf[process]; ok {
		return rank
	}
	return -1
}

// Advance changes the epoch and takes the requests under one hold of mu. A request that begins
// later is barred, so none of the old epoch is left behind (P4).
func (c *comm) Advance(generation int, cause error) {
	c.e.lock()
	c.endAll(c.Matcher.Advance(generation, cause), cause)
}

// Quiesce makes the engine call then after it has told all ends of requests so far. Callbacks are
// called in order, by one goroutine at a time. So every Completed that was due, or running on
// another goroutine, has returned by then. Bytes are copied with mu held, or belong to transfers
// for which endAll has waited. So the buffers are free (P4).
func (c *comm) Quiesce(then func()) {
	c.e.lock()
	c.e.due = append(c.e.due, callback{call: then})
	c.e.unlock()
}

func (c *comm) Revoke(cause error) {
	c.e.lock()
	c.endAll(c.Matcher.Revoke(cause), cause)
}

// endAll ends the posted requests and the sends whose offers are not accepted. Then it waits
// briefly for the requests whose bytes are under way, because the fabric uses both buffers. The
// caller holds mu; endAll unlocks it. It is a wait for other processes, but not for their programs:
// in each of them some goroutine makes progress even while the program computes. If one dies, or
// the engine fails, its transfers end.
func (c *comm) endAll(posted *transport.Request, cause error) {
	c.e.endAll(posted, cause)
	c.endOffers(cause, func(*transport.Request) bool { return true })
	for since := time.Now(); c.e.err == nil && len(c.moving) > 0; {
		c.e.mu.Unlock()
		since = c.e.rest(since)
		c.e.mu.Lock()
	}
	c.e.unlock()
}

// endOffers ends the sends whose offers are not accepted and for which which returns true. No
// packet tells the receivers: each of them leaves the epoch itself, and drops the offer then. One
// that accepts it before is sent other bytes: see accepted.
func (c *comm) endOffers(cause error, which func(*transport.Request) bool) {
	for t := range c.moving {
		if which(t.request) && c.takeBack(t) {
			c.e.end(t.request, cause)
		}
	}
}

// Sub needs no messages: all members compute the same context.
func (c *comm) Sub(name transport.Name, members []int) (transport.Comm, error) {
	if err := name.Check(); err != nil {
		return nil, err
	}
	e := c.e
	// Members may send to the new communicator as soon as they have made it. What comes before this
	// rank has made it is in early.
	e.lock()
	rank, processes := c.rank, c.members
	if members != nil {
		rank = slices.Index(members, c.rank)
		processes = make([]int, len(members))
		for i, r := range members {
			processes[i] = c.process(r)
		}
	}
	context, liveness := c.context.child(name), c.liveness
	if c.context == world { // the new communicator is the first of a program
		liveness = e.livenessOf(context)
	}
	made := e.newComm(context, liveness, rank, processes, name.Epoch)
	if c.context == world || name == transport.FirstName() {
		// What is recorded before is of earlier programs. This one has made no call but "call 0".
		e.record.Add(uint64(context), 0, 0, 0)
	}
	e.unlock()
	return made, nil
}

// Close drops the waiting messages, and makes the engine drop those that come later. Members may
// close it at different times, and members that have not closed it may still send packets.
func (c *comm) Close() error {
	c.e.lock()
	defer c.e.unlock()
	c.e.close(c.context)
	// Messages that nobody will receive must not count against their senders' leads.
	for n := range c.All() {
		c.e.received(n.Of)
	}
	c.Arrived, c.Probed, c.inbox, c.listener = match.Messages[arrival]{}, match.Messages[arrival]{}, nil, nil
	return nil
}

func (c *comm) Die() { c.e.fabric.Kill() }

func (c *comm) Leave(dies bool) {
	c.e.lock()
	c.e.leave(c.liveness, dies)
	c.e.unlock()
}

// Release sends nothing: the ranks that wait for this one ask it (see ask).
func (c *comm) Release() {
	c.e.lock()
	c.released = true
	c.e.unlock()
}

// HasReturned needs no lock: see liveness.
func (c *comm) HasReturned(rank int) bool { return c.liveness.left[c.process(rank)].Load() }

// EachPending leaves out a receive whose bytes are under way, because it waits for no program. When
// mu is unlocked nothing is due, since visit ends no request.
func (c *comm) EachPending(visit func(*transport.Request)) {
	c.e.lock()
	defer c.e.mu.Unlock()
	for r := range c.Posted.All() {
		if r.Kind != transport.Joining {
			visit(r)
			continue
		}
		r.Peer = bits.TrailingZeros64(r.Meeting.Missing) // the first, for people
		visit(r)
		r.Peer = transport.AnySource
	}
	for t := range c.moving {
		if t.arrival == nil {
			visit(t.request)
		}
	}
}

// Kept returns the number of messages that have come and wait for receives of this rank.
func (c *comm) Kept() int {
	c.e.lock()
	defer c.e.mu.Unlock()
	return c.Arrived.Len() + c.Probed.Len()
}

func (c *comm) EachUnreceived(visit func(transport.Status)) {
	c.e.lock()
	defer c.e.mu.Unlock()
	c.Matcher.EachUnreceived(visit)
}
