package local

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

func (c *Comm) Call(e transport.Epoch, w signature.Word) int {
	c.own.mu.Lock()
	number, odd := c.own.Call(e, w)
	c.own.mu.Unlock()
	if odd != nil {
		c.own.halt(odd)
	}
	c.comm.changed()
	return number
}

func (c *Comm) Called() (number int, w signature.Word) {
	c.own.mu.Lock()
	defer c.own.mu.Unlock()
	return c.own.Called()
}

func (c *Comm) Mismatch() error {
	if !c.own.IsHalted() {
		return nil
	}
	c.own.mu.Lock()
	defer c.own.mu.Unlock()
	return c.own.Mismatch()
}

// halt ends the rank's part in the epoch.
func (s *side) halt(cause *transport.MismatchError) {
	s.endAll(func() *transport.Request { return s.Halt(cause) }, cause)
}
