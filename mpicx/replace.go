package mpicx

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
	"github.com/mpicx/go-mpicx/internal/wire"
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

// Replaced returns the ranks that Replace brought into the communicator. These ranks have none of
// the data of the others. It is nil if Replace did not make the communicator.
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

// replaceBy ends a call of Replace with the communicator made, or with err.
func (c *Comm) replaceBy(r *repairing[*Comm], made *Comm, err error) {
	if err != nil {
		r.fail(mpiError("Replace", err))
		return
	}
	made.errhandler.Store(c.errhandler.Load())
	c.root().lineage.replaces.end(r.turn)
	r.happened(observe.Replace, made)
	r.end(made, nil)
}

func notReplaceable(c *Comm) error {
	return mpiErrorf("Replace", ClassComm, "%s can't be replaced, expected the world, the last communicator that Replace made, or one that Shrink made of these", c.name)
}

// This is how the living ranks of a job with spares agree on the members of a new communicator, and
// how spares learn of it. All ranks are in one communicator, the pool. Parked ranks make an empty
// proposal to each agreement there, so it ends when all workers have proposed. From the decision
// each parked rank learns whether it is taken, and which ranks the other members are.

// state returns the succession of the newest communicator.
func (l *lineage) state() succession {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is
}

// last returns the newest communicator.
func (l *lineage) last() *Comm {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

// succeed makes c the newest communicator.
func (l *lineage) succeed(c *Comm, is succession) {
	c.line = is.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is, l.newest = is, c
}

// isSpare says whether the rank begins parked: it is a spare or a fresh rank.
func (l *lineage) isSpare() bool { return l.pool != nil && l.pool.rank >= len(l.workers) }

// world returns the communicator that the rank's program begins with. A spare or a fresh rank waits
// here, and gets nil if no Replace takes it.
func (l *lineage) world() (*Comm, error) {
	switch {
	case l.pool == nil:
		return l.newest, nil
	case l.isSpare():
		return l.park()
	}
	world, err := l.pool.deriveUnder(l.pool, transport.FirstName(), true, l.workers, l.workers, "world")
	if world != nil {
		world.SetErrhandler(ErrorsPropagate)
		l.succeed(world, succession{line: 1})
	}
	return world, mpiError("Run", err)
}

// muster begins the next agreement of the pool. done gets the decision and the agreement's number.
func (l *lineage) muster(proposal errchan.Proposal, done func(d *errchan.Decision, seq uint64, err error)) {
	id := l.pool.ulfm.Reserve(l.pool.t.Epoch(), errchan.Replace)
	l.pool.ulfm.Propose(id, proposal, func(d *errchan.Decision, err error) { done(d, id.Seq, err) })
}

// park waits until this rank, a spare or a fresh rank, is taken, and returns the new communicator.
// If the other ranks have ended without taking it, park returns nil and, if all of them have died,
// the error of abandoned.
func (l *lineage) park() (*Comm, error) {
	l.pool.proc.stage.Store(stageParked)
	defer l.pool.proc.stage.Store(stageRunning)
	defer l.pool.waits("Parked")()
	if d := l.pool.proc.driver; d != nil {
		d.Doze(true)
		defer d.Doze(false)
	}
	working := l.workers
	for {
		f, promise := future.New[*Comm]()
		waiting.Of(promise.Future()).Keep(l.pool.keeper)
		over := false
		if l.recruiter != nil {
			over = true
			l.recruiter.await(func(s *staff, err error) {
				var made *Comm
				if s != nil {
					if made, err = l.join(s, uint64(s.line)); err == nil {
						l.recruiter.send(s)
					}
				}
				promise.Complete(made, err)
			})
		} else {
			l.muster(errchan.Proposal{Flag: whole}, func(d *errchan.Decision, seq uint64, err error) {
				var made *Comm
				switch over = err != nil || d.Calls == 0; {
				case err != nil:
				case over:
					dead := l.pool.Failed()
					if !slices.ContainsFunc(working, func(r int) bool { return !slices.Contains(dead, r) }) {
						err = l.abandoned(working)
					}
				default: // a worker has proposed
					if s := l.staff(d); s.err == nil {
						working = s.members
						if slices.Contains(working, l.pool.rank) {
							made, err = l.join(s, seq)
						}
					}
				}
				promise.Complete(made, err)
			})
		}
		<-f.Done() // Get would keep a core busy if ranks are processes
		if world, err := f.Get(context.Background()); world != nil || err != nil || over {
			if world != nil {
				l.pool.proc.observer.Happened(observe.Event{Kind: observe.Replace, As: &world.rank, Size: world.size, Text: world.name})
			}
			return world, err
		}
	}
}

// abandoned returns the error of a spare or fresh rank that was not taken because all working ranks
// have died. If ranks are goroutines, it returns nil, because Run does not report ranks that die
// there: a test has planned their deaths.
func (l *lineage) abandoned(working []int) error {
	if l.pool.proc.driver == nil {
		return nil
	}
	return fmt.Errorf("mpicx: Run: all working ranks have ended, and this rank was not taken in: %w", &ProcFailedError{Ranks: working})
}

// staff returns the staff that follows from a decision of the pool. It is the same at all ranks.
func (l *lineage) staff(d *errchan.Decision) *staff {
	return d.Meaning(func(d *errchan.Decision) any { return l.choose(d) }).(*staff)
}

// choose computes the staff from the note and the dead of a decision. The spares take the places of
// the dead in the order of their ranks.
func (l *lineage) choose(d *errchan.Decision) *staff {
	was, members, err := readNote(d.Note, l.pool.size)
	if err != nil {
		return &staff{err: err}
	}
	isDead := func(r int) bool { _, found := slices.BinarySearch(d.Dead, r); return found }
	var spares []int
	for r := len(l.workers); r < l.pool.size; r++ {
		if !isDead(r) && !slices.Contains(members, r) {
			spares = append(spares, r)
		}
	}
	return was.staff(members, isDead, spares)
}

// join makes the communicator of a staff, and makes it the newest. It returns an error if this rank
// is not a member.
func (l *lineage) join(s *staff, seq uint64) (*Comm, error) {
	if s.err != nil {
		return nil, s.err
	}
	if !slices.Contains(s.members, l.pool.rank) {
		return nil, leftBehind("Replace")
	}
	made, err := l.pool.deriveUnder(l.pool, transport.ReplaceName(l.pool.t.Epoch(), seq, s.digest), true, s.members, s.members, s.name())
	if made != nil {
		made.SetErrhandler(ErrorsPropagate)
		made.replaced = s.replaced
		l.succeed(made, s.succession)
	}
	return made, err
}

// This is how fresh ranks (WithRespawn) enter the communicator that Replace makes. The pool has a
// rank for every process that the job may ever have. The ranks after the workers are started, in
// order, when a decision needs them. A rank that has not been started is like one that is slow to
// begin: messages to it wait. When a member learns the decision of Replace, it makes the
// communicator at once, starts the fresh ranks, and invites each of them. All members do so,
// therefore the death of a member does not matter.
//
// A member may receive a decision, send invitations and die, while the survivors make another
// decision. So a fresh rank accepts an invitation only when every old member of the communicator
// has sent the same one or has died, and one that has sent it lives. Members that live at the same
// time have the same decision, so no living member has another one. Old members that have died are
// dead members of the new communicator. A fresh rank that has accepted an invitation sends it to
// the other fresh members, because all old members may die after they have invited only some.
//
// If all ranks that know a decision die, the fresh ranks that were started for it wait for an
// invitation of the next decision. Only the ranks before a fresh rank can invite it. If no
// invitation comes, it ends when all of these have died or ended. To let it know, it greets them,
// and a rank whose program ends tells the fresh ranks that have greeted it.

// recruit makes the rank's recruiter, which then listens. A fresh rank calls its await next.
func (l *lineage) recruit() error {
	g := newRecruiter(l.pool.rank, l.pool.size, l.readInvitation)
	g.abandoned = l.abandoned
	var err error
	if g.t, err = l.pool.t.Sub(transport.RecruitName(), nil); err == nil {
		l.recruiter = g
		g.t.Listen(g)
	}
	return mpiError("Run", err)
}

// isForsaken says whether this is a fresh rank that ends unneeded after the death of a rank before
// it. The dead rank may have made it a member of a communicator of which only other fresh ranks
// know. The rank then counts as dead, so they do not wait for it there.
func (l *lineage) isForsaken() bool { return l.recruiter != nil && l.recruiter.isForsaken() }

// renew makes the communicator in which fresh ranks take the places of the dead. d is the decision
// of c's members.
func (l *lineage) renew(c *Comm, now succession, d *errchan.Decision) (*Comm, error) {
	s := d.Meaning(func(d *errchan.Decision) any {
		s, err := l.readInvitation(invitation(now.note(c.depth, c.worldRanks), c.worldRanksOf(d.Dead)))
		if err != nil {
			s = &staff{err: err}
		}
		return s
	}).(*staff)
	made, err := l.join(s, uint64(s.line))
	if s.err == nil {
		for _, r := range s.fresh() {
			l.start(r)
		}
		l.recruiter.send(s)
	}
	return made, err
}

// invitation encodes an invitation: the length of a note, the note, and, as runs, the ranks of the
// pool that the decision counts as dead.
func invitation(note []byte, dead []int) string {
	return string(wire.AppendRuns(wire.AppendBytes(nil, note), dead))
}

// readInvitation computes the staff that an invitation describes.
func (l *lineage) readInvitation(text string) (*staff, error) {
	size := l.pool.size
	d := wire.NewReader([]byte(text))
	note, dead := d.Bytes(), d.Runs(size)
	if err := d.End(); err != nil {
		return nil, mpiErrorf("Replace", ClassOther, "an invitation of %d bytes: %v", len(text), err)
	}
	was, members, err := readNote(note, size)
	if err != nil {
		return nil, mpiError("Replace", err)
	}
	first := len(l.workers) + was.used
	if known := slices.Collect(maps.Keys(was.taken)); len(members) == 0 || first > size || slices.ContainsFunc(slices.Concat(members, known), func(r int) bool { return r >= first }) {
		return nil, mpiErrorf("Replace", ClassOther, "an invitation of members %v, %d of whom were fresh, of %d ranks", members, was.used, size)
	}
	spares := make([]int, size-first)
	for i := range spares {
		spares[i] = first + i
	}
	s := was.staff(members, func(r int) bool { return slices.Contains(dead, r) }, spares)
	s.invitation = text
	return s, nil
}
