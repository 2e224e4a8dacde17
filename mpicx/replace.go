package mpicx

import (
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Replace makes a communicator of c's size and order, in which spares (WithSpares) or fresh ranks
// (WithRespawn) take the places of the dead. Use it if the program needs the same number of ranks,
// and [Comm.Shrink] if it can continue with fewer. It needs -tags ulfm:
// with the black channel it ends with errors.ErrUnsupported.
//
// A spare that is taken, or a fresh rank, calls Run's function, or returns from Instance.World,
// with the new communicator as its world. Replaced returns the ranks that are new; Incarnation is
// greater than 0 at such a rank.
//
// Replace is collective among the living, works where Shrink does, and replaces the ranks that
// Shrink would leave out. All ranks get the new communicator, or all get an error: a
// *SpareError if there are too few spares, or too few fresh ranks left to start, after which Shrink
// still works. A rank of the new communicator may have died since, or a fresh one could not be
// started. The first use of the new communicator reports that, and then Replace makes another one.
//
// If an error arrives late on a communicator that is not broken, the first Wait may return it.
// The next Wait on the same future returns the result of Replace.
//
// Replace works on the world, on what it has made, and on what Shrink has made of these, and
// only on the newest of them. Communicators made by Dup or Split are corrupted if one of their
// members has died: make them again from the communicator that Replace returns.
func (c *Comm) Replace() *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("Replace")
	}
	if c.line == 0 && c.ulfm != nil {
		return failed[*Comm](c, notReplaceable(c))
	}
	return repair(c, errchan.Proposal{Call: errchan.Replace, Flag: whole}, func(r *repairing[*Comm], d *errchan.Decision) {
		// From here on all living members take part, no matter which errors of c come.
		c.root().lineage.replaces.await(r.turn, func() { c.replace(r, d) })
	})
}

// Replaced returns the ranks that Replace brought into the communicator. They have none of the
// data that the others have. It is nil if Replace did not make the communicator.
func (c *Comm) Replaced() []int {
	c.there("Replaced")
	return slices.Clone(c.replaced)
}

// Incarnation is how often the place of this rank has been taken over since the job began. It
// is 0 for a process that was there from the start.
func (c *Comm) Incarnation() int {
	c.there("Incarnation")
	return c.root().lineage.state().taken[c.proc.rank]
}

// replace is the second part of Replace. d is the decision of the first part, among the members of
// c. If there are spares, the living ranks of the job agree on the members; with fresh ranks d
// determines them.
func (c *Comm) replace(r *repairing[*Comm], d *errchan.Decision) {
	l := c.root().lineage
	now := l.state()
	switch {
	case c.line != now.line:
		r.fail(notReplaceable(c))
	case l.recruiter != nil:
		made, err := l.renew(c, now, d)
		c.replaceBy(r, made, err)
	case l.pool != nil:
		note := d.Meaning(func(*errchan.Decision) any { return now.note(c.depth, c.worldRanks) }).([]byte)
		l.muster(errchan.Proposal{Call: errchan.Replace, Flag: whole, Note: note}, func(d *errchan.Decision, seq uint64, err error) {
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
	r.end(made, nil)
}

func notReplaceable(c *Comm) error {
	return mpiErrorf("Replace", ClassComm, "%s can't be replaced, expected the world, the last communicator that Replace made, or one that Shrink made of these", c.name)
}
