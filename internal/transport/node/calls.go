package node

import (
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Call holds mu from the count to the look at waiting messages. So a message of another call is
// compared here if it has come before, and in add if it comes later (M2). The number is valid even
// if this rank is halted by it: what the caller begins with it ends with the mismatch (M3).
func (c *comm) Call(e transport.Epoch, w signature.Word) int {
	c.e.lock()
	defer c.e.unlock()
	number, odd := c.count(e, w)
	if odd != nil {
		c.contradict(e, odd)
	}
	return number
}

// count counts a call, and records it.
func (c *comm) count(e transport.Epoch, w signature.Word) (number int, odd *transport.MismatchError) {
	number, odd = c.Matcher.Call(e, w)
	if e == c.Epoch() {
		c.e.record.Add(uint64(c.context), e.Errors(), number, w)
	}
	return number, odd
}

func (c *comm) ID() uint64 { return uint64(c.context) }

func (c *comm) Record(rank int, calls []record.Call) (all []record.Call, complete, ok bool) {
	if p := c.process(rank); p != c.e.rank {
		memory := c.e.records[p]
		if memory == nil {
			return calls, false, false
		}
		all, complete = record.AppendFrom(memory, calls)
		return all, complete, true
	}
	c.e.lock()
	defer c.e.unlock()
	all, complete = c.e.record.Append(calls)
	return all, complete, true
}

func (c *comm) Clock(seconds *atomic.Uint32) {
	c.e.lock()
	defer c.e.unlock()
	c.e.record.Clock = seconds
}

func (c *comm) Called() (number int, w signature.Word) {
	c.e.lock()
	defer c.e.unlock()
	return c.Matcher.Called()
}

func (c *comm) Mismatch() error {
	if !c.IsHalted() {
		return nil
	}
	// The epoch may have ended since IsHalted was asked, without mu. Then the Matcher has no
	// mismatch any more, and returns nil.
	c.e.lock()
	defer c.e.unlock()
	return c.Matcher.Mismatch()
}

// halt ends the rank's part in the epoch, except for requests whose bytes are under way. It does
// not wait for these, as endAll does: it is called while a packet is taken, and only later packets
// can end them. A receiver that accepts one of the offers later is sent other bytes in place of the
// message (see accepted). Its receive stays posted, and ends with its epoch.
func (c *comm) halt(cause *transport.MismatchError) {
	c.e.endAll(c.Halt(cause), cause)
	c.endOffers(cause, func(*transport.Request) bool { return true })
}
