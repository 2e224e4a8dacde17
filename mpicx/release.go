package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// What the error channel and the transport hold of a communicator is given back once all
// ranks have closed it with no error under way: then no error can follow (H6). With the
// black channel Close finds that out; with the ULFM backend the error channel does.

func (c *Comm) release() { _, _ = c.channel.Close(), c.t.Close() }

// forget says that c is closed, and out of its family. The error channel hears of that when
// nothing is pending on c at this rank: what comes for that would be lost.
func (p *proc) forget(c *Comm) {
	if c.ulfm == nil {
		return
	}
	p.forgotten = append(p.forgotten, c)
	p.forgotten = slices.DeleteFunc(p.forgotten, func(c *Comm) bool {
		idle := true
		c.t.EachPending(func(*transport.Request) { idle = false })
		if idle {
			c.unused.Store(true)
			c.ulfm.Release()
		}
		return idle
	})
}

// released gives c back, unless this rank has left and something of it is there.
func (c *Comm) released() {
	if c.unused.Load() {
		c.release()
	}
}
