package mpicx

import "github.com/mpicx/go-mpicx/internal/transport"

// What the error channel and the transport hold of a communicator is given back once all
// ranks have closed it with no error under way: then no error can follow (H6). With the
// black channel Close finds that out; with the ULFM backend the error channel does. Then it
// leaves its family as well: before, an error of an ancestor may be what tells another
// rank of an agreement (H5).

func (c *Comm) release() { _, _ = c.channel.Close(), c.t.Close() }

// forget has c forgotten, which this rank has closed, once nothing is pending there.
func (c *Comm) forget() {
	c.proc.forgetting = append(c.proc.forgetting, c.forgetIfIdle)
	c.proc.forget()
}

// forgetIfIdle has c forgotten if nothing is pending there at this rank, and with the ULFM
// backend not before all have closed it.
func (c *Comm) forgetIfIdle() (idle bool) {
	switch {
	case c.isPending():
		return false
	case c.ulfm != nil && !c.released.Load():
		c.ulfm.Release()
	default:
		c.forgotten()
	}
	return true
}

// forgotten has c leave its family, unless there is an error meanwhile: then the ledger asks
// for that once more.
func (c *Comm) forgotten() {
	gone := false
	c.proc.feed(func() { gone = c.ledger.Forgotten() })
	switch {
	case !gone:
	case c.ulfm != nil:
		c.release()
	default:
		c.releaseWhenForgotten()
	}
}

// isPending says whether the program may wait for something on c.
func (c *Comm) isPending() (is bool) {
	c.t.EachPending(func(r *transport.Request) { is = is || operationOf(r) != nil })
	return is
}

// releaseWhenForgotten is called when all have closed c, and when this rank has forgotten it:
// the second time gives it back.
func (c *Comm) releaseWhenForgotten() {
	if c.releasing.Swap(true) {
		c.release()
	}
}
