package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// What the error channel and the transport hold of a communicator is given back once all
// ranks have closed it with no error under way: then no error can follow (H6). With the
// black channel Close finds that out; with the ULFM backend the error channel does.

func (c *Comm) release() { _, _ = c.channel.Close(), c.t.Close() }

// forgotten is called when this rank has closed c, and c has left its family.
func (c *Comm) forgotten() {
	if c.ulfm == nil {
		c.releaseWhenForgotten()
		return
	}
	p := c.proc
	p.forgotten = append(p.forgotten, c.releaseIfIdle)
	p.forgotten = slices.DeleteFunc(p.forgotten, func(idle func() bool) bool { return idle() })
}

// releaseWhenForgotten is called when all have closed c, and when this rank has forgotten it:
// the second time gives it back.
func (c *Comm) releaseWhenForgotten() {
	if c.releasing.Swap(true) {
		c.release()
	}
}

// releaseIfIdle tells the error channel that c is closed, once nothing is pending there at
// this rank: what comes for that would be lost.
func (c *Comm) releaseIfIdle() (idle bool) {
	idle = true
	c.t.EachPending(func(*transport.Request) { idle = false })
	if idle {
		c.ulfm.Release()
	}
	return idle
}
