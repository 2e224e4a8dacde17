package mpicx

import (
	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// openChannel makes the error channel of c, over a duplicate of it. Of what Dup
// makes, a rank has its side before all others need to have theirs; what Split
// makes takes no program once a rank has it, because that rank has heard of all.
func (c *Comm) openChannel(dup transport.Messenger, byDup bool) {
	if c.proc.backend == backendULFM {
		ch := ulfmbackend.New(dup, c.id, c.t.Epoch(), (*listener)(c))
		if lib := library(c); lib != nil {
			ch.Over(lib)
		}
		c.channel, c.ulfm, c.startListening = ch, ch, ch.Listen
	} else {
		var parent *blackchannel.Channel
		if byDup {
			parent = c.parent.channel.(*blackchannel.Channel)
		}
		ch := blackchannel.New(dup, c.id, parent, (*listener)(c))
		c.channel, c.startListening = ch, ch.Listen
	}
}

// openAssent opens a channel for one agreement among the members of t, which no error ends.
func openAssent(t transport.Messenger, id uint64) *ulfmbackend.Channel {
	a := new(assenting)
	a.channel = ulfmbackend.New(t, id, 0, a)
	a.channel.Listen()
	return a.channel
}

// assenting is the client of such a channel. No errors come there.
type assenting struct{ channel *ulfmbackend.Channel }

var _ errchan.ULFMClient = (*assenting)(nil)

func (a *assenting) Noticed(uint64, int, bool) {}
func (a *assenting) Resolved(*errchan.Verdict) {}
func (a *assenting) Died(int)                  {}
func (a *assenting) Revoked(int)               {}
func (a *assenting) Released()                 { _ = a.channel.Close() }

// listener is the Comm as its error channel sees it. What it is told goes into the ledger.
type listener Comm

var _ errchan.ULFMClient = (*listener)(nil)

// Noticed says that a round is open.
func (l *listener) Noticed(round uint64, by int, corrupt bool) {
	c := (*Comm)(l)
	c.proc.feed(func() { c.ledger.Noticed(round, by, corrupt) })
}

// Resolved says that it is over, and how.
func (l *listener) Resolved(v *errchan.Verdict) {
	c := (*Comm)(l)
	c.proc.feed(func() { c.ledger.Resolved(v, c.rank) })
}

// Died says that the process of a rank has died.
func (l *listener) Died(rank int) { (*Comm)(l).died(rank) }

// Released says that all ranks have closed the communicator.
func (l *listener) Released() {
	l.released.Store(true)
	(*Comm)(l).forgotten()
}

// Revoked says that a rank has revoked the communicator.
func (l *listener) Revoked(by int) { (*Comm)(l).revoked(by) }
