package mpicx

import (
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Dup makes a communicator of the same ranks, with messages and errors of its
// own (MPI_Comm_dup). It is collective. An error of c interrupts Waits on it too.
func (c *Comm) Dup() *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("Dup")
	}
	c.notInReduction("begins", "Dup")
	epoch, err := c.begin("Dup")
	if err != nil {
		return failed[*Comm](c, err)
	}
	seq := c.sequence(epoch)
	f, p := future.New[*Comm]()
	waiting.Of(p.Future()).Keep(makingKeeper{(*keeper)(c), "Dup"})
	made := c.agreed(errchan.Dup, epoch, p)
	made(c.derive(transport.Name{Epoch: epoch, Seq: uint64(seq)}, nil, c.worldRanks, fmt.Sprintf("%s.dup%d", c.name, seq)))
	return f
}

// derive makes a communicator and its error channel, and has errors of c
// interrupt it.
func (c *Comm) derive(name transport.Name, members, worldRanks []int, called string) (*Comm, error) {
	return c.deriveUnder(c, name, false, members, worldRanks, called)
}

// deriveUnder is derive of a communicator that errors of parent interrupt, not those of c.
// Agreed says that all ranks make it, whatever error comes in between.
func (c *Comm) deriveUnder(parent *Comm, name transport.Name, agreed bool, members, worldRanks []int, called string) (*Comm, error) {
	name.Generation = parent.ledger.Generation() + 1
	t, err := c.t.Sub(name, members)
	if err != nil {
		return nil, err
	}
	dup, err := t.Sub(transport.ErrorChannelName(), nil)
	if err != nil {
		return nil, err
	}
	d := newComm(c.proc, t, c, parent, called, worldRanks)
	d.id = errchan.Identify(c.id, name)
	if late := d.open(c, dup, name.Epoch, agreed, members == nil); !late {
		return d, nil
	}
	if err := c.untold(); err != nil {
		return nil, err
	}
	return nil, mpiErrorf("Dup", ClassComm, "an error of %s came in between", c.name)
}

// newComm makes a communicator of t that was made from one, nil for the world, to be
// used once it is open. Parent is the one whose errors are its own, too.
func newComm(p *proc, t transport.Comm, from, parent *Comm, name string, worldRanks []int) *Comm {
	c := &Comm{proc: p, t: t, rank: t.Rank(), size: t.Size(), parent: parent, name: name, worldRanks: worldRanks}
	c.keeper = (*keeper)(c)
	c.ledger.Owner = c
	if from != nil {
		c.errhandler.Store(from.errhandler.Load())
	}
	return c
}

// open opens the error channel of a communicator that was made from one, nil for the
// world, in epoch e. Late says that an error of from has come in between: then c is
// closed, but not where all ranks have agreed on it.
func (c *Comm) open(from *Comm, dup transport.Comm, e transport.Epoch, agreed, byDup bool) (late bool) {
	var of, under *ledger.Comm
	if from != nil {
		of = &from.ledger
	}
	if c.parent != nil {
		under = &c.parent.ledger
	}
	c.openChannel(dup, byDup)
	if !agreed && (!byDup || c.ulfm != nil) { // Dup has no message, but with ULFM an agreement; Shrink is made after one
		c.ledger.Everywhere()
	}
	c.proc.feed(func() { late = !c.proc.ledger.Make(&c.ledger, of, under, e, agreed, c.worldRanks) })
	return late
}

// agreed returns the function that completes p with a new communicator, or with the error
// for which there is none. With the ULFM backend all ranks agree on that first: either
// each has it, or each has an error.
func (c *Comm) agreed(call errchan.Calls, epoch transport.Epoch, p *future.Promise[*Comm]) func(*Comm, error) {
	op := call.String()
	if c.ulfm == nil {
		return func(d *Comm, err error) { p.Complete(d, mpiError(op, err)) }
	}
	id := c.ulfm.Reserve(epoch, call)
	return func(made *Comm, err error) {
		proposal := errchan.Proposal{Call: call, Flag: -1}
		if err != nil {
			err = c.failure(op, err)
			proposal.Flag = 0
		}
		c.ulfm.Propose(id, proposal, func(d *errchan.Decision, over error) {
			switch {
			case over != nil:
				err = c.failure(op, over)
			case err != nil:
			case len(d.Dead) > 0:
				c.learn(d.Dead)
				err = c.met(&ProcFailedError{Ranks: slices.Clone(d.Dead)})
			case d.Calls != call:
				err = mismatch(call, d)
			case d.Flag == 0:
				err = mpiErrorf(op, ClassOther, "another rank could not make its side of the communicator")
			}
			if err != nil && made != nil {
				if over == ErrRevoked { // others may have it, and wait for this rank there
					made.revoke()
				}
				made.close()
				made = nil
			}
			p.Complete(made, err)
		})
	}
}
