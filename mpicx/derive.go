package mpicx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// Dup makes a communicator of the same ranks, with messages and errors of its own (MPI_Comm_dup).
// It is collective. Use it for a library, whose messages must not be mixed with the program's. An
// error of c interrupts Waits on the duplicate too. [Comm.Split] and [Comm.Create] make
// communicators of fewer ranks.
func (c *Comm) Dup() *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("Dup")
	}
	c.notInReduction("begins", "Dup")
	// The epoch and the number of the call there are the name of the duplicate. All ranks count
	// alike, so no message is needed to agree on the name.
	epoch, err := c.begin("Dup")
	if err != nil {
		return failed[*Comm](c.of(), err)
	}
	w := call{Kind: signature.Dup}.Word()
	seq := c.t.Call(epoch, w)
	f, end := begins[*Comm](c.of(), "Dup", ledger.Take)
	made := c.agreed(errchan.Dup, w, epoch, waiting.Of(f), func(d *comm, err error) { end(d.handle(), err) })
	// A halted rank (M3) has no side: its peers are in another call.
	if err := c.t.Mismatch(); err != nil {
		made(nil, err)
		return f
	}
	made(c.derive(transport.Name{Epoch: epoch, Seq: uint64(seq)}, nil, c.ledger.Ranks(), fmt.Sprintf("%s.dup%d", c.name, seq)))
	return f
}

// derive makes a communicator from c, and its error channel. Errors of c are errors of it too (D1).
// It does not wait: other ranks may make their sides later, and messages to these wait for them.
func (c *comm) derive(name transport.Name, members, worldRanks []int, called string) (*comm, error) {
	return c.deriveUnder(c, c, name, false, members, worldRanks, called)
}

// deriveUnder is like derive, but the parent of the new communicator, whose errors are also its
// errors, is parent instead of c. agreed says that all ranks make the communicator, no matter which
// errors come in the meantime. Otherwise an error of c since the epoch of the call ends the call: a
// rank that was told of it before it called has not made its side.
//
// Its errhandler is that of like at this moment, as in MPI, or ErrorsPropagate if like is nil. It
// is set here because deaths may be met on the communicator before deriveUnder returns.
//
// The channel has a duplicate of its own. What drops messages of programs, an epoch or a revoke,
// must not drop the channel's.
func (c *comm) deriveUnder(parent, like *comm, name transport.Name, agreed bool, members, worldRanks []int, called string) (*comm, error) {
	// t's epoch counts the errors of each ancestor by its generation (see transport.Epoch). t is
	// made from c, even if parent is another communicator, because members are ranks of c.
	name.Generation = parent.ledger.Generation() + 1
	t, err := c.t.Sub(name, members)
	if err != nil {
		return nil, err
	}
	dup, err := t.Sub(transport.ErrorChannelName(), nil)
	if err != nil {
		return nil, err
	}
	d := newComm(c.proc, t, parent, called)
	if like != nil {
		d.errhandler.Store(like.errhandler.Load())
	}
	d.id = name.Digest(c.id)
	if late := d.open(c, dup, worldRanks, name.Epoch, agreed, members == nil); !late {
		return d, nil
	}
	if err := c.untold(); err != nil {
		return nil, err
	}
	return nil, mpiErrorf("Dup", ClassComm, "an error of %s came in the meantime", c.name)
}

// newComm makes a communicator over t. It can be used after open. Errors of parent are its errors
// too.
func newComm(p *proc, t transport.Comm, parent *comm, name string) *comm {
	c := &comm{proc: p, t: t, rank: t.Rank(), size: t.Size(), parent: parent, name: name}
	c.keeper, c.exposed = &keeper{comm: c, mode: ledger.Take}, hook.Hide((*inside)(c))
	c.chooser = collective.ChooserFor(t)
	c.ledger.Owner = c
	waiting.Of(c.succeeded.Future()).Keep(c.keeper)
	c.succeeded.Complete(struct{}{}, nil)
	return c
}

// open opens the error channel of c, which was made from from in epoch e; from is nil for the
// world. worldRanks are the members' ranks in the world; nil means that they are the same. late
// says that an error of from has come since e, and that c is therefore closed. This does not happen
// if all ranks have agreed to make c.
func (c *comm) open(from *comm, dup transport.Comm, worldRanks []int, e transport.Epoch, agreed, byDup bool) (late bool) {
	var of, under *ledger.Comm
	if from != nil {
		of = &from.ledger
	}
	if c.parent != nil {
		under = &c.parent.ledger
	}
	// Diagnose asks over the messenger of the channel, because that still works when the program
	// hangs and after an error.
	c.side = diagnosis.NewSide(dup, (*answering)(c))
	c.openChannel(c.side, byDup)
	if !agreed && (!byDup || c.ulfm != nil) { // Dup sends no messages, except for an agreement with the ULFM backend
		c.ledger.Everywhere()
	}
	// Make comes before anything is heard on the channel: it pushes Open, which starts listening.
	c.proc.feed(func() { late = !c.proc.ledger.Make(&c.ledger, of, under, e, agreed, worldRanks) })
	if d := c.proc.driver; d != nil {
		if err := d.Failed(); err != nil { // all others were told before c was made
			c.proc.giveUp(err)
		}
	}
	if from != nil && !late {
		c.inheritStop(from)
	}
	return late
}

// agreed returns a function that ends a call that makes a communicator. what describes the call,
// and its future has the cell. The function gets the new communicator or an error, and passes the
// result to end. With the ULFM backend all ranks first agree on the result: all get the
// communicator, or all get an error. With the black channel a rank may have its side while
// another one has an error; then it gets that error, too, at the latest from its next Wait (P1).
//
// The place in the order of agreements is reserved when the call begins, since all ranks begin such
// calls in the same order, but may come to propose in another.
func (c *comm) agreed(call errchan.Calls, what signature.Word, epoch transport.Epoch, cell *waiting.Cell, end func(*comm, error)) func(*comm, error) {
	op := what.Kind().String()
	if c.ulfm == nil {
		return func(d *comm, err error) { end(d, c.failure(op, err)) }
	}
	id := c.ulfm.Reserve(epoch, call)
	return func(made *comm, err error) {
		proposal := errchan.Proposal{Call: call, Flag: -1}
		if err != nil {
			err = c.failure(op, err)
			proposal.Flag = 0
		}
		aside := c.showMismatch(what, epoch, cell)
		c.ulfm.Propose(id, proposal, func(d *errchan.Decision, over error) {
			if err == nil || over != nil { // otherwise this rank's own error says more than the decision
				err = c.outcome(op, call, d, over)
			}
			c.t.Cancel(aside)
			if err != nil && made != nil {
				if over == ErrRevoked { // other ranks may have made it, and wait for this rank on it
					made.revoke()
				}
				made.close()
				made = nil
			}
			end(made, err)
		})
	}
}

// outcome returns the error of op according to the agreement on it, or nil. Deaths go first: when
// members have died nothing is compared (M4).
func (c *comm) outcome(op string, call errchan.Calls, d *errchan.Decision, over error) error {
	switch {
	case over != nil:
		return c.failure(op, over)
	case len(d.Dead) > 0:
		c.learn(d.Dead)
		return c.met(&ProcFailedError{Ranks: slices.Clone(d.Dead)})
	case d.Calls != call:
		return mismatch(op, call, d)
	case d.Flag == 0:
		return mpiErrorf(op, ClassOther, "another rank could not make its side of the communicator")
	}
	return nil
}

// assembled begins an operation that makes communicators of the ranks of c. The algorithm a
// exchanges the arguments of all ranks. Then choose returns the members of the communicator that
// this rank is in, or nil if it is in none. end makes the result from the new communicator. If bad
// is not nil, this rank's arguments are bad. Its future then ends with bad at once, and a tells the
// other ranks, at which choose returns an error.
func assembled[T any](c *comm, kind signature.Kind, calls errchan.Calls, a collective.Algorithm, bad error, choose func() (*part, error), end func(*comm) T) *future.Future[T] {
	op := kind.String()
	c.notInReduction("begins", op)
	epoch, err := c.begin(op)
	if err != nil {
		return failed[T](c, err)
	}
	// The number of the call is the tag of its messages, and part of the new communicators' names.
	w := call{Kind: kind}.Word()
	seq := c.t.Call(epoch, w)
	f, over := begins[T](c, op, ledger.Take)
	made := c.agreed(calls, w, epoch, waiting.Of(f), func(d *comm, err error) {
		var result T
		if d != nil {
			result = end(d)
		}
		if bad != nil {
			err = nil // the program already has bad from the future that assembled returned
		}
		over(result, err)
	})
	x := &collective.Exchange{Name: op, Signature: w}
	x.Start(c.t, epoch, transport.CollectiveTag(seq), a, ender(func(err error) {
		var of *part
		if err == nil {
			err = bad
		}
		if err == nil {
			of, err = choose()
		}
		if of == nil { // in none, or with an error: the others need this rank's part in the agreement
			made(nil, err)
			return
		}
		name := transport.SplitName(epoch, uint64(seq), of.color)
		made(c.derive(name, of.members, of.worldRanks, fmt.Sprintf("%s.%s%d(%d)", c.name, strings.ToLower(op), seq, of.color)))
	}))
	if bad != nil {
		return failed[T](c, bad)
	}
	return f
}

// A part is the members of one of the communicators that one call makes. The ranks of a process
// share it.
type part struct {
	color      int   // distinguishes it from the others
	members    []int // ranks in the communicator of the call; nil: all
	worldRanks []int // of the members
}

// showMismatch makes Waits for an agreement, whose future has the cell, return a mismatch of
// collective calls, because the call of the other ranks may never end. The agreement still ends by
// its decision; the caller then cancels the request. While that is pending, the transport compares
// its call with those of the other ranks.
func (c *comm) showMismatch(what signature.Word, epoch transport.Epoch, cell *waiting.Cell) *transport.Request {
	op := what.Kind().String()
	w := &onlyError{name: op, aside: true, done: func(err error) {
		if hasType[*transport.MismatchError](err) {
			cell.Disturb(c.failure(op, err))
			c.proc.lookAgain()
		}
	}}
	w.request.Signature = what
	c.receiveError(w, epoch, transport.NoTag)
	return &w.request
}

// openChannel makes the error channel of c, over dup, a duplicate of it. byDup says that Dup makes
// c: one rank may then have its side of c before the program of another rank calls Dup. A rank that
// has its side of a communicator from Split knows that the programs of all ranks have called Split.
func (c *comm) openChannel(dup transport.Messenger, byDup bool) {
	if c.proc.ulfm {
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

// assenting is the client of a channel that openAssent opens. No errors come on such a channel, and
// a death is in the decision. When all living members have released the channel, it is closed (H6).
type assenting struct{ channel *ulfmbackend.Channel }

var _ errchan.ULFMClient = (*assenting)(nil)

func (a *assenting) Noticed(uint64, int, bool) {}
func (a *assenting) Resolved(*errchan.Verdict) {}
func (a *assenting) Asked([]byte)              {}
func (a *assenting) Died(int)                  {}
func (a *assenting) Revoked(int)               {}
func (a *assenting) Released()                 { _ = a.channel.Close() }

// listener is the client of a Comm's error channel. It feeds the ledger. Its methods must not
// block, and run on whichever goroutine has taken the message, perhaps one of another rank.
type listener comm

var _ errchan.ULFMClient = (*listener)(nil)

// Noticed says that a round is open.
func (l *listener) Noticed(round uint64, by int, corrupt bool) {
	c := (*comm)(l)
	c.proc.feed(func() { c.ledger.Noticed(round, by, corrupt) })
}

// Resolved says that the round is over, with its verdict.
func (l *listener) Resolved(v *errchan.Verdict) {
	c := (*comm)(l)
	c.proc.feed(func() { c.ledger.Resolved(v, c.rank) })
}

// Died says that the process of a rank has died.
func (l *listener) Died(rank int) { (*comm)(l).died(rank) }

// Released says that all ranks have closed the communicator.
func (l *listener) Released() {
	l.released.Store(true)
	(*comm)(l).forgetIfIdle()
}

// Revoked says that a rank has revoked the communicator.
func (l *listener) Revoked(by int) { (*comm)(l).revoked(by) }
