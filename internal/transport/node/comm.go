package node

import (
	"errors"
	"fmt"
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
	_ transport.Comm    = (*comm)(nil)
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
	e.comms[id] = c
	for p, died := range l.dead {
		if rank := c.rankIn(p); died && rank >= 0 {
			c.Lose(rank)
		}
	}
	early := e.early[id]
	delete(e.early, id)
	for _, a := range early { // they came before their senders died, if these have
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

func (c *comm) process(rank int) int {
	if c.members == nil {
		return rank
	}
	return c.members[rank]
}

func (c *comm) Features() transport.Features {
	return transport.Features{Name: c.e.name, Deaths: c.e.mortal}
}

func (c *comm) Await(w waiting.Sleeper, ended <-chan struct{}) (woken bool) {
	return c.e.await(w, ended)
}

func (c *comm) Glance() { c.e.glance() }

func (c *comm) Failed() error {
	if !c.e.over.Load() {
		return nil
	}
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.e.err
}

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

// deliver is add for a message that has just come. It drops messages from dead members.
func (c *comm) deliver(a *arrival) error {
	if c.liveness.dead[a.source] && c.rankIn(a.source) >= 0 {
		c.e.received(a)
		return nil
	}
	return c.add(a)
}

// add gives a message to the oldest receive that matches it, or keeps it until one does. It returns
// an error if no member sends such a message.
func (c *comm) add(a *arrival) error {
	rank := c.rankIn(a.source)
	switch {
	case rank < 0:
		return errors.New("a message to a communicator that it is not in")
	case c.liveness.expired:
		c.e.received(a)
		return nil
	case a.header.listener:
		return c.addForListener(a)
	case c.IsOver(a.header.epoch):
		c.e.received(a)
		return nil // its sender ends an offer together with the epoch
	}
	h := &a.header
	envelope := match.Envelope{Key: match.Key{Epoch: h.epoch, Source: rank, Tag: h.tag}, Bytes: h.length, Signature: h.signature}
	if odd := c.Contradicts(&envelope); odd != nil {
		c.contradict(h.epoch, odd)
		return nil
	}
	probes, recv := c.Take(&envelope)
	c.e.endAll(probes, nil)
	if recv != nil && recv.Kind == transport.Receiving {
		c.give(recv, a)
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
	case !r.Take && r.Alloc == nil && a.header.length > len(r.Buf):
		c.e.refuse(a)
		r.Err = &transport.TruncateError{Status: r.Status, Room: len(r.Buf)}
	default:
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
		c.e.accept(a.kept(), c.transfer(r, buf[:a.header.length]))
		return
	}
	c.e.end(r, r.Err)
}

func (c *comm) Advance(generation int, cause error) {
	c.e.lock()
	c.endAll(c.Matcher.Advance(generation, cause), cause)
}

// Quiesce makes the engine call then after it has told all ends of requests so far.
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
// caller holds mu; endAll unlocks it.
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

// endOffers ends the sends whose offers are not accepted and for which which returns true.
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

// Close drops the waiting messages, and makes the engine drop those that come later.
func (c *comm) Close() error {
	c.e.lock()
	defer c.e.unlock()
	c.e.close(c.context)
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

func (c *comm) HasReturned(rank int) bool { return c.liveness.left[c.process(rank)].Load() }

func (c *comm) EachPending(visit func(*transport.Request)) {
	c.e.lock()
	defer c.e.mu.Unlock()
	for r := range c.Posted.All() {
		visit(r)
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
