package node

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

func (c *comm) Call(e transport.Epoch, w signature.Word) int {
	c.e.lock()
	defer c.e.unlock()
	number, odd := c.Matcher.Call(e, w)
	if odd != nil {
		c.contradict(e, odd)
	}
	return number
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
	c.e.lock()
	defer c.e.unlock()
	return c.Matcher.Mismatch()
}

// halt ends the rank's part in the epoch, except for requests whose bytes are under way.
func (c *comm) halt(cause *transport.MismatchError) {
	c.e.endAll(c.Halt(cause), cause)
	c.endOffers(cause, func(*transport.Request) bool { return true })
}
