package node

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// The error channel receives and sends its messages through a listener: in order, and independently
// of the epoch that the communicator is in.

// Listen makes l the listener. It gets the messages that have come already, and then those that
// come later. The lock is held from the assignment to the look at the dead. So of each death the
// listener is told, here or by noteDeath. Deaths come before messages, all by callbacks: nothing is
// told with mu held, since the listener has locks of its own, and may call Poke.
func (c *comm) Listen(l transport.Listener) {
	c.e.lock()
	c.listener = l
	for _, rank := range c.Dead() {
		c.e.due = append(c.e.due, callback{to: l, from: rank, died: true})
	}
	c.handOn()
	c.e.unlock()
	// The listener may have had something to send before it was known here.
	c.Poke()
}

// addForListener is add for a message to the listener. It accepts an offer at once.
func (c *comm) addForListener(a *arrival) error {
	// The length is only a claim of another process, and is about to be allocated.
	if err := a.checkRoom(); err != nil {
		return err
	}
	// It has its place in the inbox before its bytes have come. So a long message is not overtaken
	// by later short ones.
	a = a.kept()
	c.inbox = append(c.inbox, a)
	if a.header.kind == offer {
		c.e.accept(a, &transfer{comm: c, bytes: make([]byte, a.header.length)})
	}
	c.handOn()
	return nil
}

// handOn gives the listener the messages of the inbox, in order, up to the first whose bytes have
// not come. A message whose bytes are missing holds up the later ones of all ranks, though only
// those of its sender have to wait. If the sender dies, done removes it.
func (c *comm) handOn() {
	if c.listener == nil {
		return
	}
	n := 0
	// The listener may keep the payload: it is a copy, or was allocated for the transfer.
	for ; n < len(c.inbox) && c.inbox[n].header.kind == whole; n++ {
		a := c.inbox[n]
		c.e.due = append(c.e.due, callback{to: c.listener, from: c.rankIn(a.source), payload: a.bytes})
	}
	c.inbox = slices.Delete(c.inbox, 0, n)
}

// Poke asks the listener for messages until it has none, and sends them. If another goroutine does
// so already, that goroutine asks once more.
//
// So Next is called by one goroutine at a time, and what it returns is sent in its order. It is
// called without mu, because the listener holds locks of its own when it calls Poke. The rest of
// the loop holds mu: a Poke that comes while Next says that there is nothing finds asking set, sets
// again, and is not lost.
func (c *comm) Poke() {
	e := c.e
	e.lock()
	if c.listener == nil || c.asking {
		c.askAgain = true
		e.mu.Unlock()
		return
	}
	c.asking = true
	for l := c.listener; ; {
		c.askAgain = false
		e.mu.Unlock()
		to, payload, ok := l.Next()
		e.mu.Lock()
		switch {
		// An expired process counts as dead, and the dead send nothing. A message to a dead member
		// is dropped.
		case ok && e.err == nil:
			if !c.liveness.expired && !c.HasLost(to) {
				c.tell(to, payload)
			}
		case !c.askAgain:
			c.asking = false
			e.unlock()
			return
		}
	}
}

// tell sends a message of the listener to the listener of another rank. It has no lead. The error
// channel sends few messages (P6), and must not wait for a rank that computes.
func (c *comm) tell(to int, payload []byte) {
	h := header{kind: whole, to: c.context, length: len(payload), listener: true}
	if len(payload) <= c.e.eager(c.process(to)) {
		c.e.sendPacket(c.process(to), &h, payload)
	} else {
		c.e.offer(c.process(to), &h, &transfer{comm: c, bytes: payload})
	}
}
