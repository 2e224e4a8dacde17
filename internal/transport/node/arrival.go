package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

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
