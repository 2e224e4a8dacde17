package mpicx

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
)

// carryOut carries out an output of the rank's ledger. c is the rank's first communicator.
//
// feed calls it without proc.mu, so it may lock transports and channels. It gets one output at a
// time, in the ledger's order, so a channel never sees a join before the raise that it follows. A
// feed inside of it changes the ledger at once; the outer feed carries out what that causes.
func (c *comm) carryOut(o *ledger.Output) {
	switch o.Action {
	// A report consents to the end of the round, as a join does. Before either, the agreements of
	// the family freeze, and their decisions go with it into the verdict (H5).
	case ledger.Raise:
		ownerOf(o.Comm).submit(o.Raised, freeze(o.Family))
	case ledger.Join:
		ownerOf(o.Comm).channel.Join(o.Round, freeze(o.Family))
	// The channel wants the dead in ascending order; Failed has them as this rank learned of them.
	case ledger.Lose:
		lost := ownerOf(o.Comm)
		lost.ulfm.Lose(slices.Sorted(slices.Values(lost.failed())))
	// What some rank has decided is the result everywhere (H5). This comes before Advance, which
	// ends the proposals that are left with the error.
	case ledger.Complete:
		for _, d := range o.Family {
			ownerOf(d).ulfm.Complete(o.Error.Verdict.Settled)
		}
		c.proc.feed(o.Comm.Settled)
	// All of the family begin a new epoch (D1). The program is told of the error only after Moved:
	// until then a buffer of an operation that has ended may be in use (P4).
	case ledger.Advance:
		for i, d := range o.Family {
			ownerOf(d).advance(o.Generation, o.Error.Face, o.Frozen[i], o.Lost != nil && o.Lost[i])
		}
		moved, family := o.Comm.Moved, o.Family // o is the ledger's
		quiesce(family, func() {
			for _, d := range family { // a reduction's function may have failed until now
				c.proc.leaks.Excuse(d)
			}
			c.proc.feed(moved)
		})
	// If a round of an ancestor is joined here, the first message that the new channel hears must
	// not decide an agreement (H5). So it freezes before it listens.
	case ledger.Open:
		if o.Frozen[0] {
			freeze(o.Family)
		}
		ownerOf(o.Comm).startListening()
	// The cause tells a Wait in this context that an error is arriving, which it has to report
	// instead of the cancellation (P8).
	case ledger.Interrupt:
		s := o.Scope.Owner.(*scope)
		s.end(&arriving{s})
	// This rank has joined a round whose verdict its TryAll will return, or has given the TryAll
	// up. So it votes no.
	case ledger.Withdraw:
		o.Vote.Owner.(interface{ start(yes bool) }).start(false)
	case ledger.Resume:
		ownerOf(o.Comm).resume()
	case ledger.Forget:
		ownerOf(o.Comm).forget()
	// The rank dies for its peers if they can't be told why it has ended (stageFailed).
	case ledger.Leave:
		c.t.Leave(c.proc.stage.Load() == stageFailed)
	case ledger.Tell:
		tell(o.Event)
	}
}

// tell tells the observer of an event. Few ranks have one, so carryOut has no space for the
// observer's Event on its stack.
//
//go:noinline
func tell(e *ledger.Event) {
	c := ownerOf(e.Comm)
	o := observe.Event{Comm: c.name, Round: e.Round, Final: e.Corrupt}
	by := c.worldRank(e.By)
	switch e.Kind {
	case ledger.Signalled:
		f := decodeFailure(errchan.Report{Data: e.Raised.Data})
		o.Kind, o.Text, o.Code = observe.Fault, f.Message, f.Code
	case ledger.Noticed:
		o.Kind, o.By = observe.Notice, &by
	case ledger.Joined:
		o.Kind = observe.Join
	case ledger.Resolved, ledger.Corrupted:
		o.Kind, o.Text, o.Failures = observe.Verdict, e.Error.Face.Error(), len(e.Error.Verdict.Reports)
	case ledger.Revoked:
		o.Kind, o.By = observe.Revoke, &by
	case ledger.Died:
		o.Kind, o.By = observe.Death, &by
		if c.proc.observer != nil && c.proc.observer.Log != nil {
			o.Calls = strings.Join(c.compare([]int{min(c.rank, e.By), max(c.rank, e.By)}, nil), "; ")
		}
	case ledger.Advanced:
		o.Kind = observe.Epoch
	}
	c.proc.observer.Happened(o)
}

// advance moves c to the epoch after an error of a communicator of the given generation. The
// transport drops messages of earlier epochs (P3). Operations that were pending are done with err,
// and their buffers are free (P4, D1).
func (c *comm) advance(generation int, err error, frozen, lost bool) {
	if c.ulfm != nil {
		c.ulfm.Advance(generation, err, frozen, lost) // first: operations of the new epoch need it there
	}
	c.stops.And(stopAsked) // the calls of Stopping are counted anew
	c.t.Advance(generation, err)
	c.stopAnew()
}

// submit gives the error channel a report of this rank. If the rank's program ends with the error,
// the verdict counts the rank among the dead, so repairs after it do not wait for the rank.
func (c *comm) submit(r *ledger.Raised, settled []errchan.Settled) {
	if c.ulfm != nil && r.Leaving {
		c.ulfm.Unwind(r.Data, settled)
	} else {
		c.channel.Raise(r.Data, r.Corrupt, settled)
	}
}

// freeze freezes a family, and returns the ends of its agreements for the verdict (H5). It returns
// nil if the family is empty.
func freeze(family []*ledger.Comm) []errchan.Settled {
	if len(family) == 0 {
		return nil
	}
	settled := []errchan.Settled{}
	for _, d := range family {
		if m := ownerOf(d).ulfm; m != nil {
			settled = append(settled, m.Freeze()...)
		}
	}
	return settled
}

// quiesce calls then once no operation of a family that has ended uses its buffers (P4). A
// reduction's function may be at work, on another goroutine or above this call, so nothing waits
// for it here.
func quiesce(family []*ledger.Comm, then func()) {
	var busy atomic.Int32
	busy.Store(int32(len(family)))
	for _, d := range family {
		ownerOf(d).t.Quiesce(func() {
			if busy.Add(-1) == 0 {
				then()
			}
		})
	}
}

// giveUp corrupts c and all communicators derived from it at this rank alone: the transport has
// failed, so no peer can be told. The error has no Verdict, because no round has ended with it.
// Agreements, and the wait of a parked rank, end with it here, because no decision and no
// invitation can come any more (P1).
func (c *comm) giveUp(cause error) {
	err := &CommCorruptedError{Failures: c.brokenBy(cause), verdict: verdict{causes: mpiError("Wait", cause)}}
	c.proc.feed(func() {
		err.of = c.ledger.Fail()
		err.of.Face = err
	})
	for _, d := range c.family() {
		if d.ulfm != nil {
			d.ulfm.Advance(c.ledger.Generation(), err, false, false) // its agreements end
		}
	}
	c.lineage.giveUp(err)
}
