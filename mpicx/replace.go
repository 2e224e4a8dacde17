package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Replace makes a communicator of c's size and order, in which spares (WithSpares) have the
// places of the dead. A spare that is taken calls Run's function, or returns from
// Instance.World, with the new communicator as its world. Replaced says which ranks those are,
// and Incarnation tells a rank that it is one.
//
// It is collective among the living, works where Shrink does, and counts those as dead that
// Shrink would leave out. All ranks have the new communicator, or all have an error: a
// *SpareError if there are too few spares, after which Shrink still works. Somebody may have
// died since, also a spare that has just been taken: the first use of the new communicator
// tells, and then Replace makes another.
//
// On a communicator that is not broken, an error that comes late may be what the first Wait
// reports; the next Wait on the same future has what Replace has come to.
//
// Replace is for the world, for what it made before, and for what Shrink made of these. Only
// the newest of them can be replaced. Others, from Dup or Split, are made anew from what
// Replace returns: they are corrupted if one of their members has died. Only the ULFM backend
// has it.
func (c *Comm) Replace() *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("Replace")
	}
	if c.line == 0 && c.ulfm != nil {
		return failed[*Comm](c, notReplaceable(c))
	}
	return repair(c, errchan.Proposal{Call: errchan.Replace, Flag: whole}, func(r *repairing[*Comm], d *errchan.Decision) {
		// All living members take part from here on, whatever errors of c still come.
		c.root().lineage.replaces.await(r.turn, func() { c.replace(r, d) })
	})
}

// Replaced returns the ranks that Replace brought into the communicator: they have nothing of
// what the others have. It is nil for a communicator that Replace did not make.
func (c *Comm) Replaced() []int {
	c.there("Replaced")
	return slices.Clone(c.replaced)
}

// Incarnation is how often the place of this rank has been taken over since the job began: 0
// for one that was there from the start.
func (c *Comm) Incarnation() int {
	c.there("Incarnation")
	return c.root().lineage.state().taken[c.proc.rank]
}

// replace is the second part of Replace: the living ranks of the job, spares among them, agree
// on who is to be a member. D is what the first part, the members of c, has decided.
func (c *Comm) replace(r *repairing[*Comm], d *errchan.Decision) {
	l := c.root().lineage
	now := l.state()
	switch {
	case c.line != now.line:
		r.fail(notReplaceable(c))
	case l.pool != nil:
		l.muster(errchan.Proposal{Call: errchan.Replace, Flag: whole, Note: now.note(c.depth, c.worldRanks)}, func(d *errchan.Decision, seq uint64, err error) {
			if err != nil {
				r.fail(c.failure("Replace", err))
				return
			}
			made, err := l.join(l.staff(d), seq)
			c.replaceBy(r, made, err)
		})
	case len(d.Dead) > 0:
		r.fail(&SpareError{Places: slices.Clone(d.Dead)})
	default:
		now.line++
		made, err := c.deriveUnder(c.heir(d), transport.ReplaceName(r.id.Epoch, r.id.Seq, 0), true, nil, c.worldRanks, now.name())
		if made != nil {
			l.succeed(made, now)
		}
		c.replaceBy(r, made, err)
	}
}

// replaceBy ends a Replace.
func (c *Comm) replaceBy(r *repairing[*Comm], made *Comm, err error) {
	if err != nil {
		r.fail(mpiError("Replace", err))
		return
	}
	made.errhandler.Store(c.errhandler.Load())
	c.root().lineage.replaces.end(r.turn)
	r.done(timeline.Replace, made)
	r.promise.Complete(made, nil)
}

func notReplaceable(c *Comm) error {
	return mpiErrorf("Replace", ClassComm, "%s can't be replaced, expected the newest that can: the world, or what Replace made last, or what Shrink made of that", c.name)
}
