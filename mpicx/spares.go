package mpicx

import (
	"context"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// How the living ranks of a job with spares agree on the members of a new communicator, and how
// spares learn of it. All ranks are in one communicator, the pool. Parked ranks make an empty
// proposal to each agreement there, so it ends when all workers have proposed. From the decision
// each parked rank learns whether it is taken, and who the other members are.

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

// isSpare says whether the rank is parked at its beginning.
func (l *lineage) isSpare() bool { return l.pool != nil && l.pool.rank >= len(l.workers) }

// world returns the communicator that the rank's program begins with, or nil for a spare or a fresh
// rank that was not taken.
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

// muster begins the next agreement of the pool.
func (l *lineage) muster(proposal errchan.Proposal, done func(d *errchan.Decision, seq uint64, err error)) {
	id := l.pool.ulfm.Reserve(l.pool.t.Epoch(), errchan.Replace)
	l.pool.ulfm.Propose(id, proposal, func(d *errchan.Decision, err error) { done(d, id.Seq, err) })
}

// park waits until this rank, a spare or a fresh rank, is taken, and returns the new communicator.
// It returns nil if the programs of all others have ended; if no program has, because all others have
// died, that is an error.
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
				l.pool.proc.happened(timeline.Line{Event: timeline.Replace, As: &world.rank, Size: world.size, Text: world.name})
			}
			return world, err
		}
	}
}

// abandoned is the error of a spare or fresh rank that was not taken, if none of the working ranks has
// returned: all have died. If ranks are goroutines, it is nil: Run reports no rank that dies by a plan.
func (l *lineage) abandoned(working []int) error {
	if l.pool.proc.driver == nil {
		return nil
	}
	return fmt.Errorf("mpicx: Run: all working ranks have ended, and this rank was not taken in: %w", &ProcFailedError{Ranks: working})
}

// staff returns the staff that a decision means, the same at all ranks.
func (l *lineage) staff(d *errchan.Decision) *staff {
	return d.Meaning(func(d *errchan.Decision) any { return l.choose(d) }).(*staff)
}

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

// join makes the communicator of a staff. It is an error if this rank is not a member.
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
