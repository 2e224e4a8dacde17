package mpicx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Died notes that a process has died.
func (l *listener) Died(rank int) {
	c := (*Comm)(l)
	if rank == c.rank {
		c.proc.die()
		return
	}
	c.disturbing.Lock()
	first, lose := false, false
	c.proc.feed(func() { first = c.ledger.Died(rank) })
	if first {
		lose = c.disturb(ErrProcFailedPending)
	}
	c.disturbing.Unlock()
	if lose {
		c.lose()
	}
}

// disturb tells the receives from AnySource that a possible sender has died, or
// with nil that they may go on. Under ErrorsPropagate it says whether there are
// any: then all ranks are to be told instead. The caller holds disturbing.
func (c *Comm) disturb(err error) (lose bool) {
	c.t.EachPending(func(r *transport.Request) {
		if o, ok := r.Done.(operation); ok && r.Peer == AnySource {
			if c.propagates() {
				lose = true
			} else {
				o.cell().Disturb(err)
			}
		}
	})
	return lose
}

// receiving is told of a receive or probe that has begun, and may have ended.
func (c *Comm) receiving(peer int) {
	if c.mitigator == nil || peer != AnySource {
		return
	}
	c.disturbing.Lock()
	unacknowledged := false
	c.proc.feed(func() { unacknowledged = c.ledger.Unacknowledged() })
	lose := unacknowledged && c.disturb(ErrProcFailedPending)
	c.disturbing.Unlock()
	if lose {
		c.lose()
	}
}

// mourned says whether the program has acknowledged that all other ranks are dead.
func (c *Comm) mourned() bool { return len(c.acknowledged()) == c.size-1 }

// lose has all ranks get a *CommCorruptedError because of a death.
func (c *Comm) lose() { c.proc.feed(c.ledger.Lose) }

// propagates says whether an error of this rank concerns all. With the black channel
// it always does: there is nothing else that a peer could learn it by.
func (c *Comm) propagates() bool {
	return c.mitigator == nil || Errhandler(c.errhandler.Load()) == ErrorsPropagate
}

// failure returns err as the error of an operation on c. If it is a death, what
// the error handler says happens first.
func (c *Comm) failure(op string, err error) error {
	if err == nil {
		return nil
	}
	if err == transport.ErrDied {
		c.proc.die() // before the program sees the error: it shall not
	}
	if err == errchan.ErrOver {
		if v := c.unreported(); v != nil {
			err = v
		}
	}
	dead, ok := errors.AsType[*transport.DeadError](err)
	if !ok {
		return mpiError(op, err)
	}
	if dead.Rank == AnySource {
		all := c.Failed()
		slices.Sort(all)
		return c.met(&ProcFailedError{Ranks: all})
	}
	c.mitigator.Died(dead.Rank) // which may tell of it later
	c.learn([]int{dead.Rank})
	if c.propagates() && c.isClosed() { // there is nobody left to tell (F2)
		return &MPIError{Op: op, Class: ClassComm, Text: fmt.Sprintf("rank %d has died, and %s is closed", dead.Rank, c.name), err: &ProcFailedError{Ranks: []int{dead.Rank}}}
	}
	return c.met(&ProcFailedError{Ranks: []int{dead.Rank}})
}

// met returns err, which this rank's program is to be told, or all ranks are.
func (c *Comm) met(err *ProcFailedError) error {
	if c.propagates() {
		c.lose()
	}
	return err
}

// die ends this rank: its process has died. Whatever it does on its
// communicators from now on ends its goroutine.
func (p *proc) die() {
	if !p.dead.Swap(true) {
		p.feed(func() { p.ledger.Die() })
	}
}

// end says that the rank's program has ended, on the world and what is derived
// from it.
func (p *proc) end(failed bool) {
	p.feed(p.ledger.Depart)
	if p.world.mitigator != nil {
		for _, c := range p.world.family() {
			c.mitigator.Leave()
		}
	}
	p.failed = failed
	p.feed(p.ledger.Go)
}

// giveUp corrupts c and what is derived from it here, where no message moves any more
// and no peer can be told.
func (c *Comm) giveUp(cause error) {
	err := &CommCorruptedError{Failures: []Failure{newFailure(cause, 0)}, verdict: verdict{comm: c, causes: mpiError("Wait", cause)}}
	err.Failures[0].Rank = c.rank
	c.proc.feed(func() { c.ledger.Fail().Face = err })
	for _, d := range c.family() {
		if d.mitigator != nil {
			d.mitigator.Advance(c.ledger.Generation(), err, false) // its agreements end
		}
	}
}
