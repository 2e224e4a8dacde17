package mpicx

// advance moves c to the epoch after an error of a communicator of the given generation. The
// transport drops messages of earlier epochs (P3). Operations that were pending are done with err, and
// their buffers are free (P4, D1).
func (c *Comm) advance(generation int, err error, frozen, lost bool) {
	if c.ulfm != nil {
		c.ulfm.Advance(generation, err, frozen, lost) // first: operations of the new epoch need it there
	}
	c.t.Advance(generation, err)
}
