package node

import (
	"errors"
	"fmt"
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

	reminding reminding
	onFailure func(error) // called when the engine has failed; nil: nothing is called

	listener transport.Listener // nil: not yet, or no longer
	// inbox are the messages for the listener, in order. The first of them is an offer whose bytes
	// have not come, or there is no listener yet.
	inbox []*arrival
	// asking says that a goroutine is in Poke, and asks the listener for messages to send. askAgain
	// says that Poke was called since the goroutine asked last, or before there was a listener.
	asking, askAgain bool
}

// arrival is a message that has come, or an offer. While it waits for a receive, its Node is in the
// Matcher's queue.
type arrival struct {
	header header
	source int    // the process that has sent it
	bytes  []byte // of the message; of an offer: empty, or where the bytes are (see origin)
	match.Node[arrival]
}

// kept returns a copy of a that stays valid after take has returned.
func (a *arrival) kept() *arrival {
	return &arrival{header: a.header, source: a.source, bytes: slices.Clone(a.bytes)}
}

// checkRoom returns an error if this process can't have memory for the message.
func (a *arrival) checkRoom() error {
	if most := installed(); a.header.length > most {
		return fmt.Errorf("a message of %d bytes, where there are %d of memory", a.header.length, most)
	}
	return nil
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

// deliver is add for a message that has just come. It drops messages from dead members. A process
// that counts as dead may live: it was declared dead, or has expired. Its requests have ended
// everywhere, so what it still sends must not be received. If it has expired, it lives on for other
// programs, whose messages share its lead. So the message is counted as received.
func (c *comm) deliver(a *arrival) error {
	if c.liveness.dead[a.source] && c.rankIn(a.source) >= 0 {
		c.e.received(a)
		return nil
	}
	return c.add(a)
}

// add gives a message to the oldest receive that matches it, or keeps it until one does. It returns
// an error if no member sends such a message. The fields of a's header are what another process has
// written. They were checked as far as decode can. Here the sender has to be a member, and
// checkRoom and done check lengths. Any tag, epoch or signature is possible: no memory depends on
// them, and a wrong one has the effect of a program that sends a wrong message.
func (c *comm) add(a *arrival) error {
	rank := c.rankIn(a.source)
	switch {
	case rank < 0:
		return errors.New("a message to a communicator that it is not in")
	// An expired process is dead for the communicators of its program, error channel included. It
	// must not react to a message that its senders count as lost.
	case c.liveness.expired:
		c.e.received(a)
		return nil
	// Epochs do not apply to the error channel: its messages are what ends them.
	case a.header.listener:
		return c.addForListener(a)
	// P3. A message of a later epoch than this rank's is not over: it waits in the queue until the
	// rank follows.
	case c.IsOver(a.header.epoch):
		c.e.received(a)
		return nil // its sender ends an offer together with the epoch
	}
	h := &a.header
	// The call is compared before the message is matched, because a rank that has made another call
	// may never receive it (M2). A message of another call is dropped, since this rank is halted:
	// it will receive nothing more in the epoch.
	envelope := match.Envelope{Key: match.Key{Epoch: h.epoch, Source: rank, Tag: h.tag}, Bytes: h.length, Signature: h.signature}
	if odd := c.Contradicts(&envelope); odd != nil {
		c.contradict(h.epoch, odd)
		return nil
	}
	// Probes that are older than the receive end too. They see the message before it is gone.
	probes, recv := c.Take(&envelope)
	c.e.endAll(probes, nil)
	// Here the bytes are still where the sender has put them. The receive copies them from there,
	// so a message that is awaited is copied only once at this process.
	switch {
	case recv != nil && recv.Kind == transport.Receiving:
		c.give(recv, a)
		return nil
	case recv != nil && recv.Kind == transport.Joining:
		c.meetIn(recv, rank, a)
		return nil
	}
	a = a.kept()
	a.Node = match.Node[arrival]{Envelope: envelope, Of: a}
	if recv != nil {
		c.Keep(recv, &a.Node)
		c.e.end(recv, nil)
	} else {
		c.Arrived.Push(&a.Node)
	}
	return nil
}

// give gives a message to the receive that matches it. The receive has the Status of the message.
// Neither is in a queue any more. An offer is accepted, or refused if the buffer is too small.
func (c *comm) give(r *transport.Request, a *arrival) {
	switch {
	case a.header.kind == whole:
		c.e.received(a)
		r.Fill(r.Status, a.bytes, false)
	// The sender's send ends as if the message had been received: a message that is too long is an
	// error only here (F5), and not one byte of it is moved.
	case !r.Take && r.Alloc == nil && a.header.length > len(r.Buf):
		c.e.refuse(a)
		r.Err = &transport.TruncateError{Status: r.Status, Room: len(r.Buf)}
	default:
		// The length is only a claim of another process. Memory for it is allocated here, and Go
		// ends a program that allocates too much. Where the program has a buffer, the case above
		// has limited the length. r is in no queue, so fail has not ended it.
		if err := a.checkRoom(); err != nil && (r.Take || r.Alloc != nil) {
			c.e.garbage(a.source, err)
			r.Err = c.e.err
			break
		}
		buf := r.Buf
		switch {
		case r.Take:
			r.Buf = make([]byte, a.header.length)
			buf = r.Buf
		case r.Alloc != nil:
			buf = r.Alloc(a.header.length)
		}
		// The arrival is valid until take returns, and the transfer needs it longer.
		c.e.accept(a.kept(), c.transfer(r, buf[:a.header.length]))
		return
	}
	c.e.end(r, r.Err)
}

// Advance changes the epoch and takes the requests under one hold of mu. A request that begins
// later is barred, so none of the old epoch is left behind (P4).
func (c *comm) Advance(generation int, cause error) {
	c.e.lock()
	c.endAll(c.Matcher.Advance(generation, cause), cause)
}

// Quiesce makes the engine call then after it has told all ends of requests so far. News is told in
// order, by one goroutine at a time. So every Completed that was due, or running on another
// goroutine, has returned by then. Bytes are copied with mu held, or belong to transfers for which
// endAll has waited. So the buffers are free (P4).
func (c *comm) Quiesce(then func()) {
	c.e.lock()
	c.e.news = append(c.e.news, news{call: then})
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

// HasReturned needs no lock: see liveness.
func (c *comm) HasReturned(rank int) bool { return c.liveness.left[c.process(rank)].Load() }

// EachPending leaves out a receive whose bytes are under way, because it waits for no program. When
// mu is unlocked there is no news, since visit ends no request.
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
