package mpicx

import "github.com/mpicx/go-mpicx/internal/transport"

// advance moves c to the epoch after an error of a communicator of the given generation.
// The transport drops the messages of earlier epochs (P3). What was pending is done with
// err, and its buffers are free (P4, D1).
func (c *Comm) advance(generation int, err error, frozen, lost bool) {
	if c.ulfm != nil {
		c.ulfm.Advance(generation, err, frozen, lost) // first: what begins in the new epoch finds it there
	}
	c.t.Advance(generation, err)
}

// sequence returns the number of the next collective operation in epoch e, from 1.
func (c *Comm) sequence(e transport.Epoch) int {
	s := &c.collectives
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != e {
		s.epoch, s.next = e, 0
	}
	s.next++
	return s.next
}
