package mpicx

import (
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
)

// carryOut carries out an output of the rank's ledger. c is the rank's first communicator.
func (c *Comm) carryOut(o *ledger.Output) {
	switch o.Action {
	case ledger.Raise:
		ownerOf(o.Comm).submit(o.Raised, freeze(o.Family))
	case ledger.Join:
		ownerOf(o.Comm).channel.Join(o.Round, freeze(o.Family))
	case ledger.Lose:
		lost := ownerOf(o.Comm)
		lost.ulfm.Lose(slices.Sorted(slices.Values(lost.Failed())))
	case ledger.Complete:
		for _, d := range o.Family {
			ownerOf(d).ulfm.Complete(o.Error.Verdict.Settled)
		}
		c.proc.feed(o.Comm.Settled)
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
	case ledger.Open:
		if o.Frozen[0] {
			freeze(o.Family)
		}
		ownerOf(o.Comm).startListening()
	case ledger.Interrupt:
		s := o.Scope.Owner.(*scope)
		s.end(&arriving{s})
	case ledger.Withdraw:
		o.Vote.Owner.(interface{ start(yes bool) }).start(false)
	case ledger.Resume:
		ownerOf(o.Comm).resume()
	case ledger.Forget:
		ownerOf(o.Comm).forget()
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
	case ledger.Advanced:
		o.Kind = observe.Epoch
	}
	c.proc.observer.Happened(o)
}

// advance moves c to the epoch after an error of a communicator of the given generation. The
// transport drops messages of earlier epochs (P3). Operations that were pending are done with err,
// and their buffers are free (P4, D1).
func (c *Comm) advance(generation int, err error, frozen, lost bool) {
	if c.ulfm != nil {
		c.ulfm.Advance(generation, err, frozen, lost) // first: operations of the new epoch need it there
	}
	c.t.Advance(generation, err)
}

// submit gives the error channel a report of this rank.
func (c *Comm) submit(r *ledger.Raised, settled []errchan.Settled) {
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
// failed, so no peer can be told.
func (c *Comm) giveUp(cause error) {
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
}
