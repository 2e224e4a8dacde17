package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// advance moves c to the epoch after an error of a communicator of the given generation. The
// transport drops messages of earlier epochs (P3). Operations that were pending are done with err, and
// their buffers are free (P4, D1).
func (c *Comm) advance(generation int, err error, frozen, lost bool) {
	if c.ulfm != nil {
		c.ulfm.Advance(generation, err, frozen, lost) // first: operations of the new epoch need it there
	}
	c.t.Advance(generation, err)
}

// sequence returns the number of the next collective call in epoch e, from 1. what describes the
// call. All ranks make their calls in the same order, so they have the same number. It is the tag of
// the call's messages, and part of the name of a communicator that the call makes.
func (c *Comm) sequence(e transport.Epoch, what signature.Word) int { return c.t.Call(e, what) }
