package mpicx

import (
	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// openChannel makes the error channel of c, over a duplicate of it. byDup says that Dup makes c: a
// rank may then have its side while the program of another rank has not come to Dup. A rank that has
// its side of a Split knows that the programs of all ranks have come to it.
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

// openAssent opens a channel for one agreement among the members of t. No error ends the agreement.
func openAssent(t transport.Messenger, id uint64) *ulfmbackend.Channel {
	a := new(assenting)
	a.channel = ulfmbackend.New(t, id, 0, a)
	a.channel.Listen()
	return a.channel
}

// assenting is the client of a channel of openAssent, on which no errors come.
type assenting struct{ channel *ulfmbackend.Channel }

var _ errchan.ULFMClient = (*assenting)(nil)

func (a *assenting) Noticed(uint64, int, bool) {}
func (a *assenting) Resolved(*errchan.Verdict) {}
func (a *assenting) Died(int)                  {}
func (a *assenting) Revoked(int)               {}
func (a *assenting) Released()                 { _ = a.channel.Close() }

// listener is the client of a Comm's error channel. It feeds the ledger.
type listener Comm

var _ errchan.ULFMClient = (*listener)(nil)

// Noticed says that a round is open.
func (l *listener) Noticed(round uint64, by int, corrupt bool) {
	c := (*Comm)(l)
	c.proc.feed(func() { c.ledger.Noticed(round, by, corrupt) })
}

// Resolved says that the round is over, with its verdict.
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
