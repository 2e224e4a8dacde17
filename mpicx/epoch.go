package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// advance moves c to the epoch after an error of a communicator of the given generation.
// The transport drops the messages of earlier epochs (P3). What was pending is done with
// err, and its buffers are free (P4, D1).
func (c *Comm) advance(generation int, err error, frozen, lost bool) {
	if c.ulfm != nil {
		c.ulfm.Advance(generation, err, frozen, lost) // first: what begins in the new epoch finds it there
	}
	c.t.Advance(generation, err)
	c.proc.leaks.excuse(&c.ledger)
}

// sequence returns the number of the next collective call in epoch e, from 1, which is of what.
// All ranks make their calls in one order, so they have the same number, which is the tag of
// their messages and part of the names of what they make.
func (c *Comm) sequence(e transport.Epoch, what signature.Word) int { return c.t.Call(e, what) }
