package node

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// Ranks that have made different calls may all wait for each other, and then no message tells of
// it (M2). So a rank that has waited a while to receive or send a message of a call reminds its peer:
// it tells it what it has called. That is what its own messages would say, and what the message that
// it waits for is compared with when it comes. So a reminder finds nothing that would not be found if
// the message came. A rank whose own call had a bad argument sends no messages: it answers reminders.
//
// A rank that waits for all, for the agreement on a new communicator, reminds all others.
//
// If ranks wait for each other in calls of one communicator alone, they wait in the same place: who
// waits in the first of all places waits for one that has made its call there. One of them has
// made another one than the peer that it waits for, or an algorithm would have them wait for
// each other.

const (
	remindPeriod = 100 * time.Millisecond
	mostReminded = 64  // at a time
	seldomest    = 512 // periods between two reminders, at most
)

// reminding is what a communicator waits for.
type reminding struct {
	oldest  uint64 // number of the first request of a collective call that waits, or id of the send
	periods int    // for which it has waited
	next    int    // who is told next by a rank that waits for all
}

// remind has ranks that wait told of, once a period: after 1, 2, 4 … of them, since
// those who have not come to their call yet do not keep what they are told.
func (e *engine) remind() {
	e.lock()
	defer e.unlock()
	for _, c := range e.comms {
		if e.err == nil && c.isRemindDue() {
			c.remind()
		}
	}
}

func (c *comm) isRemindDue() bool {
	s := &c.reminding
	for r := range c.waiting() {
		number := r.Number
		if t, sends := r.Where.(*transfer); sends {
			number = t.id
		}
		if number != s.oldest {
			s.oldest, s.periods = number, 0
			return false
		}
		s.periods++
		return s.periods&(s.periods-1) == 0 || s.periods%seldomest == 0
	}
	return false
}

// waiting yields the requests of collective calls that wait, with the numbers of their calls: receives and then sends,
// the oldest first.
func (c *comm) waiting() iter.Seq2[*transport.Request, int] {
	return func(yield func(*transport.Request, int) bool) {
		for r := range c.Posted.All() {
			if number, ok := c.WaitsIn(r, c.rank); ok && !yield(r, number) {
				return
			}
		}
		for _, t := range slices.SortedFunc(maps.Keys(c.moving), func(t, u *transfer) int { return cmp.Compare(t.id, u.id) }) {
			if number, ok := c.WaitsIn(t.request, c.rank); ok && t.arrival == nil && !yield(t.request, number) {
				return
			}
		}
	}
}

// remind tells those who are waited for. Where members have died nothing is compared (M4).
func (c *comm) remind() {
	if c.HasLostAny() { // itself, if this process has expired
		return
	}
	told := 0
	for r, number := range c.waiting() {
		h := header{kind: reminder, to: c.context, epoch: r.Epoch, tag: transport.CollectiveTag(number), signature: r.Signature}
		if r.Tag != transport.NoTag {
			c.tellReminder(r.Peer, &h)
			if before := c.Before(r.Epoch, number); before > 0 {
				h.tag = transport.CollectiveTag(before)
				c.tellReminder(r.Peer, &h)
			}
			told++
		} else {
			for ; told < min(mostReminded, c.Size()-1); told++ {
				c.reminding.next = (c.reminding.next + 1) % c.Size()
				if c.reminding.next == c.rank {
					c.reminding.next = (c.reminding.next + 1) % c.Size()
				}
				c.tellReminder(c.reminding.next, &h)
			}
		}
		if told >= mostReminded {
			return
		}
	}
}

// tellReminder leaves out who has no room.
func (c *comm) tellReminder(to int, h *header) {
	p := c.process(to)
	if o := c.e.out[p]; o == nil || len(o.backlog) == 0 {
		c.e.sendPacket(p, h, nil)
	}
}

// takeReminder compares what another rank has called with what this one has.
func (e *engine) takeReminder(source int, h header) error {
	if !transport.IsCollective(h.tag) {
		return fmt.Errorf("a reminder of tag %d", h.tag)
	}
	c := e.comms[h.to]
	if c == nil {
		return nil
	}
	rank := c.rankIn(source)
	if rank < 0 {
		return fmt.Errorf("a reminder on a communicator that it is not in")
	}
	if odd, halted := errors.AsType[*transport.MismatchError](c.Matcher.Mismatch()); !halted || odd.Theirs.Kind() == signature.Refused {
		c.differs(rank, &h)
	}
	return nil
}

// differs says whether another rank waits in another call than this one has made. Both are then told.
func (c *comm) differs(rank int, h *header) bool {
	envelope := match.Envelope{Key: match.Key{Epoch: h.epoch, Source: rank, Tag: h.tag}, Signature: h.signature}
	if odd := c.Contradicts(&envelope); odd != nil {
		c.contradict(h.epoch, odd)
		return true
	}
	own, ok := c.Made(h.epoch, transport.CollectiveNumber(h.tag))
	if ok = ok && transport.IsCollective(h.tag) && !h.signature.Fits(own); ok {
		c.answer(h.epoch, h.tag, own, rank)
	}
	return ok
}

// contradict halts this rank, and tells another one, whose call contradicts this one's, what this one has called.
// The program of this rank may have returned: then only that of the other one can report the error. A rank that is
// halted contradicts nobody.
func (c *comm) contradict(e transport.Epoch, odd *transport.MismatchError) {
	c.halt(odd)
	c.answer(e, transport.CollectiveTag(odd.Number), odd.Own, odd.Source)
}

func (c *comm) answer(e transport.Epoch, tag int, own signature.Word, to int) {
	if c.e.err == nil {
		h := header{kind: reminder, to: c.context, epoch: e, tag: tag, signature: own}
		c.e.sendPacket(c.process(to), &h, nil)
	}
}
