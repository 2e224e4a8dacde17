package mpicx

import "github.com/mpicx/go-mpicx/internal/transport"

// The error channel and the transport release a communicator when all ranks have closed it and no
// error is under way: no error can follow then (H6). With the black channel, Close finds this out;
// with the ULFM backend the error channel does. Only then does the communicator leave its family. Before
// that, an error of an ancestor may have to tell another rank of an agreement (H5).

func (c *Comm) release() { _, _ = c.channel.Close(), c.t.Close() }

// forget forgets c, which this rank has closed, when nothing is pending on it.
func (c *Comm) forget() {
	c.proc.forgetting = append(c.proc.forgetting, c.forgetIfIdle)
	c.proc.forget()
}

// forgetIfIdle forgets c if nothing is pending on it at this rank. With the ULFM backend it also
// waits until all ranks have closed c.
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

// forgotten takes c out of its family. If there is an error by then, c stays, and the ledger asks
// once more later.
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

// isPending says whether the program may wait for an operation on c.
func (c *Comm) isPending() (is bool) {
	c.t.EachPending(func(r *transport.Request) { is = is || operationOf(r) != nil })
	return is
}

// releaseWhenForgotten is called when all ranks have closed c, and when this rank has forgotten it.
// The second of these calls releases c.
func (c *Comm) releaseWhenForgotten() {
	if c.releasing.Swap(true) {
		c.release()
	}
}
