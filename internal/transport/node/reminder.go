package node

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

// Ranks that have made different collective calls may all wait for each other. Then no message
// arrives that would reveal the mismatch (M2). So a rank that has waited for a while to receive or
// send a message of a collective call sends its peer a reminder: which call it has made. The peer
// compares this with its own call, as it would compare a message. A reminder therefore reports only
// a mismatch that the message itself would have revealed. A rank whose own call had a bad argument
// sends no messages for it, but it answers reminders.
//
// A rank that waits for all others, for the agreement on a new communicator, reminds all of them.
//
// A rank may also wait for one that has released the communicator, which sends nothing when it does
// that. It answers a reminder. A rank whose program waits for anything else than a collective call
// sends needs instead, after the same times.
//
// In a deadlock within the collective calls of one communicator, there is always a rank to remind.
// Number the calls of each rank. Of the ranks that wait for each other, consider those whose call
// has the lowest number. Each peer that they wait for has made its own call of this number. If all
// these calls were the same, ranks would wait for each other in one algorithm, and no algorithm
// lets them. So one of them has made another call than the peer that it waits for.

const (
	remindPeriod = 100 * time.Millisecond
	mostReminded = 64  // reminders of a communicator in one period, at most
	seldomest    = 512 // periods between two reminders, at most
)

// reminding is the state of a communicator's reminders, or of its needs. The engine's mu protects
// it.
type reminding struct {
	// oldest identifies the request that has waited longest, of the requests that it is for: the
	// Number of a receive, or the id of a send's offer.
	oldest  uint64
	periods int // periods for which that request has waited
	next    int // the rank reminded last by a rank that waits for all others, or asked last
}

// remind is called after n periods. It sends the reminders that are due: after a request has waited
// 1, 2, 4 … periods, and then every seldomest periods. They are repeated because a peer does not
// keep a reminder of a call that it has not made yet.
func (e *engine) remind(n int) {
	e.lock()
	defer e.unlock()
	for _, c := range e.comms {
		if e.err == nil && c.reminding.isDue(n, c.waiting(c.waitsIn)) {
			c.remind()
		}
		// The first communicator of a program is never released.
		if e.err == nil && c.context != c.liveness.family && c.needing.isDue(n, c.waiting(isProgrammed)) {
			c.ask()
		}
	}
}

// isDue counts n periods, and says whether reminders are due.
func (s *reminding) isDue(n int, waiting iter.Seq2[*transport.Request, int]) bool {
	for r := range waiting {
		number := r.Number
		if t, sends := r.Where.(*transfer); sends {
			number = t.id
		}
		if number != s.oldest {
			s.oldest, s.periods = number, 0
			return false
		}
		before := s.periods
		s.periods += n
		return bits.Len(uint(before)) < bits.Len(uint(s.periods)) || before/seldomest < s.periods/seldomest
	}
	return false
}

// waitsIn is WaitsIn for this rank.
func (c *comm) waitsIn(r *transport.Request) (number int, ok bool) { return c.WaitsIn(r, c.rank) }

// isProgrammed says whether the program waits for a request that belongs to no collective call.
func isProgrammed(r *transport.Request) (number int, ok bool) {
	return 0, r.Tag >= transport.AnyTag && r.IsAwaited()
}

// waiting yields the waiting requests for which which returns true, with the numbers of their
// calls: first the receives, then the sends, each oldest first.
func (c *comm) waiting(which func(*transport.Request) (number int, ok bool)) iter.Seq2[*transport.Request, int] {
	return func(yield func(*transport.Request, int) bool) {
		for r := range c.Posted.All() {
			if number, ok := which(r); ok && !yield(r, number) {
				return
			}
		}
		for _, t := range slices.SortedFunc(maps.Keys(c.moving), func(t, u *transfer) int { return cmp.Compare(t.id, u.id) }) {
			if number, ok := which(t.request); ok && t.arrival == nil && !yield(t.request, number) {
				return
			}
		}
	}
}

// remind sends a reminder to each rank that this one waits for, mostReminded at most. On a
// communicator whose members have died, no calls are compared (M4), so it sends none.
func (c *comm) remind() {
	if c.HasLostAny() { // also true if this process itself has expired
		return
	}
	told := 0
	for r, number := range c.waiting(c.waitsIn) {
		h := header{kind: reminder, to: c.context, epoch: r.Epoch, tag: transport.CollectiveTag(number), signature: r.Signature}
		if r.Tag != transport.NoTag {
			before := c.Before(r.Epoch, number)
			for rank := range c.Size() {
				if !r.WaitsFor(rank) {
					continue
				}
				h.tag = transport.CollectiveTag(number)
				c.tellReminder(rank, &h)
				if before > 0 {
					h.tag = transport.CollectiveTag(before)
					c.tellReminder(rank, &h)
				}
				told++
			}
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

// ask asks the ranks that the program waits for, mostReminded at most, whether they have released
// the communicator. A request from any source may be waiting since the last of them has left.
func (c *comm) ask() {
	c.endAny()
	peers := make(map[int]bool)
	for r := range c.waiting(isProgrammed) {
		peers[r.Peer] = true
	}
	h := header{kind: need, to: c.context, epoch: c.Epoch()}
	for n, told := 0, 0; n < c.Size() && told < mostReminded; n++ {
		c.needing.next = (c.needing.next + 1) % c.Size()
		to := c.needing.next
		if to != c.rank && !c.HasLost(to) && (peers[to] || peers[transport.AnySource] && !c.gone[to]) {
			c.tellReminder(to, &h)
			told++
		}
	}
}

// tellReminder sends a reminder or a need, unless packets to that rank already wait for room in its
// ring.
func (c *comm) tellReminder(to int, h *header) {
	h.length = int(c.e.lastID)
	p := c.process(to)
	if o := c.e.out[p]; o == nil || len(o.backlog) == 0 {
		c.e.sendPacket(p, h, nil)
	}
}

// takeReminder handles a reminder: it compares the call of the sender with the call of this rank. A
// rank that is halted does not compare, unless it is halted by a call with a bad argument. A rank
// that has released the communicator says so. It returns an error if no process sends such a
// packet.
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
	odd, halted := errors.AsType[*transport.MismatchError](c.Matcher.Mismatch())
	if halted && odd.Theirs.Kind() != signature.Refused || !c.differs(rank, &h) {
		c.isGone(source, &h)
	}
	return nil
}

// differs says whether the call that another rank waits in is not the call that this rank has made
// in its place. If so, it sends the other rank a reminder of this rank's call. It also halts this
// rank, unless this rank's own call was the one with a bad argument.
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

// contradict halts this rank because of a mismatch, and sends the rank with the other call a
// reminder of this rank's own call. If the program of this rank has returned, only the program of
// the other rank can report the error. The other rank does not answer if it is halted already.
func (c *comm) contradict(e transport.Epoch, odd *transport.MismatchError) {
	c.halt(odd)
	c.answer(e, transport.CollectiveTag(odd.Number), odd.Own, odd.Source)
}

// answer sends a rank a reminder of this rank's own call of a collective tag.
func (c *comm) answer(e transport.Epoch, tag int, own signature.Word, to int) {
	if c.e.err == nil {
		h := header{kind: reminder, to: c.context, epoch: e, tag: tag, signature: own}
		c.e.sendPacket(c.process(to), &h, nil)
	}
}
