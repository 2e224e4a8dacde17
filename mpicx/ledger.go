package mpicx

import (
	"context"
	"log/slog"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
)

// How the rank's ledger is driven: what reaches it, and what is done that it asks
// for. What it means is in package ledger.

// feed gives the ledger an input, and has what comes of it carried out: by this
// goroutine, or by the one of this rank that does so already.
func (p *proc) feed(input func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	input()
	if p.carrying {
		return
	}
	p.carrying = true
	for o, ok := p.ledger.Next(); ok; o, ok = p.ledger.Next() {
		if o.Action == ledger.Wake {
			p.change()
			continue
		}
		p.mu.Unlock()
		p.carryOut(&o)
		p.mu.Lock()
	}
	p.carrying = false
}

// ownerOf returns the communicator of an account.
func ownerOf(a *ledger.Comm) *Comm { return a.Owner.(*Comm) }

func (p *proc) carryOut(o *ledger.Output) {
	switch o.Action {
	case ledger.Raise:
		ownerOf(o.Comm).submit(o.Raised, freeze(o.Family))
	case ledger.Join:
		ownerOf(o.Comm).channel.Join(o.Round, freeze(o.Family))
	case ledger.Lose:
		c := ownerOf(o.Comm)
		c.mitigator.Lose(slices.Sorted(slices.Values(c.Failed())))
	case ledger.Complete:
		for _, d := range o.Family {
			if m := ownerOf(d).mitigator; m != nil {
				m.Complete(o.Error.Verdict.Settled)
			}
		}
		p.feed(o.Comm.Settled)
	case ledger.Advance:
		for i, d := range o.Family {
			ownerOf(d).advance(o.Generation, o.Error.Face, o.Frozen[i])
		}
		p.feed(o.Comm.Moved)
	case ledger.Open:
		if o.Frozen[0] {
			freeze(o.Family)
		}
		ownerOf(o.Comm).startListening()
	case ledger.Interrupt:
		s := o.Scope.Owner.(*scope)
		s.cancel(&arriving{s})
	case ledger.Withdraw:
		o.Vote.Owner.(*vote).start(false)
	case ledger.Resume:
		ownerOf(o.Comm).resume()
	case ledger.Leave:
		p.world.t.Leave(p.failed)
	case ledger.Tell:
		p.tell(o.Event)
	}
}

// submit gives the channel what this rank has raised.
func (c *Comm) submit(r *ledger.Raised, settled []errchan.Settled) {
	if c.mitigator != nil && r.Leaving {
		c.mitigator.Unwind(r.Data, settled)
	} else {
		c.channel.Raise(r.Data, r.Corrupt, settled)
	}
}

// freeze stops agreements, and returns what they have come to: nil for no family.
func freeze(family []*ledger.Comm) []errchan.Settled {
	if len(family) == 0 {
		return nil
	}
	settled := []errchan.Settled{}
	for _, d := range family {
		if m := ownerOf(d).mitigator; m != nil {
			settled = append(settled, m.Freeze()...)
		}
	}
	return settled
}

// advance moves c to the epoch after an error of the given generation: messages of
// before are gone, futures that were pending are done with the verdict, and their
// buffers free (P3, P4, D1).
func (c *Comm) advance(generation int, err error, frozen bool) {
	if c.mitigator != nil {
		c.mitigator.Advance(generation, err, frozen) // first: what begins in the new epoch finds it there
	}
	c.t.Advance(generation, err)
}

// listener is the Comm as its error channel sees it.
type listener Comm

var _ errchan.Survivor = (*listener)(nil)

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

// face returns what the program gets of a verdict.
func face(e *ledger.Error) error {
	causes := make([]error, len(e.Own))
	for i, r := range e.Own {
		causes[i] = r.Cause
	}
	v := verdict{comm: ownerOf(e.Comm), causes: withoutVerdicts(together(causes))}
	if e.Corrupt() {
		return &CommCorruptedError{Failures: failuresOf(e.Verdict), Dead: e.Verdict.Dead, verdict: v}
	}
	return &PropagatedError{Failures: failuresOf(e.Verdict), verdict: v}
}

// raise has every rank get a verdict with f. It returns nil if there is nobody to
// tell.
func (c *Comm) raise(f Failure, r *ledger.Raised) *ledger.Raised {
	r.Data = f.encode()
	var raised *ledger.Raised
	c.proc.feed(func() { raised = c.ledger.Raise(r) })
	return raised
}

// tell logs an event.
func (p *proc) tell(e *ledger.Event) {
	level, args := slog.LevelWarn, []any{"rank", ownerOf(e.Comm).rank, "comm", ownerOf(e.Comm).name, "epoch", e.Round}
	if e.Corrupt {
		level = slog.LevelError
	}
	switch e.Kind {
	case ledger.Signalled:
		f := decodeFailure(errchan.Report{Data: e.Raised.Data})
		args = append(args, "code", f.Code, "message", f.Message, "corrupt", e.Corrupt)
	case ledger.Noticed:
		if e.By == ownerOf(e.Comm).rank {
			return // it has raised the error itself
		}
		args = append(args, "from", e.By)
	case ledger.Revoked:
		args = append(args, "from", e.By)
	case ledger.Resolved, ledger.Corrupted:
		args = append(args, "failures", len(e.Error.Verdict.Reports))
	case ledger.Died:
		args = append(args, "process", e.By)
	default:
		return
	}
	p.log.Log(context.Background(), level, e.Kind.String(), args...)
}
