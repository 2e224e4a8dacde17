package mpicx

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
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
		c.proc.replaces.await(r.turn, func() { c.replace(r, d) })
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
	return c.proc.lineage().taken[c.proc.rank]
}

// replace is the second part of Replace: the living ranks of the job, spares among them, agree
// on who is to be a member. D is what the first part, the members of c, has decided.
func (c *Comm) replace(r *repairing[*Comm], d *errchan.Decision) {
	now := c.proc.lineage()
	pool := c.proc.pool
	switch {
	case c.line != now.line:
		r.fail(notReplaceable(c))
	case pool != nil:
		pool.muster(errchan.Proposal{Call: errchan.Replace, Flag: whole, Note: now.note(c.depth, c.worldRanks)}, func(d *errchan.Decision, seq uint64, err error) {
			if err != nil {
				r.fail(c.failure("Replace", err))
				return
			}
			made, err := pool.join(pool.staff(d), seq)
			c.replaceBy(r, made, err)
		})
	case len(d.Dead) > 0:
		r.fail(&SpareError{Places: slices.Clone(d.Dead)})
	default:
		now.line++
		made, err := c.deriveUnder(c.heir(d), transport.ReplaceName(r.id.Epoch, r.id.Seq, 0), true, nil, c.worldRanks, now.name())
		if made != nil {
			c.proc.succeed(made, now)
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
	c.proc.replaces.end(r.turn)
	r.promise.Complete(made, nil)
}

func notReplaceable(c *Comm) error {
	return mpiErrorf("Replace", ClassComm, "%s can't be replaced, expected the newest that can: the world, or what Replace made last, or what Shrink made of that", c.name)
}

// A pool is all ranks of a job that has spares, as one of them sees it. The first are the
// workers, who are the world; the others are parked until they are needed, at the side of a
// communicator that nobody else uses, and which is the parent of all worlds. In each agreement
// there they have a part that says nothing, so it ends when all workers have begun it; and they
// learn from what was decided whether they are needed, and who the others are.
type pool struct {
	*Comm
	workers []int // of the world
}

// employ makes a worker's world.
func (p *pool) employ() (*Comm, error) {
	world, err := p.deriveUnder(p.Comm, transport.FirstName(), true, p.workers, p.workers, "world")
	if world != nil {
		world.SetErrhandler(ErrorsPropagate)
		p.proc.succeed(world, lineage{line: 1})
	}
	return world, mpiError("Run", err)
}

// muster begins the next agreement of the pool.
func (p *pool) muster(proposal errchan.Proposal, done func(d *errchan.Decision, seq uint64, err error)) {
	id := p.ulfm.Reserve(p.t.Epoch(), errchan.Replace)
	p.ulfm.Propose(id, proposal, func(d *errchan.Decision, err error) { done(d, id.Seq, err) })
}

// park waits until this rank, a spare, is needed, and returns the communicator that it is
// taken into. It returns nil if the programs of all others have ended.
func (p *pool) park() (*Comm, error) {
	for {
		f, promise := future.New[*Comm]()
		waiting.Of(promise.Future()).Keep(p.keeper)
		over := false
		p.muster(errchan.Proposal{Flag: whole}, func(d *errchan.Decision, seq uint64, err error) {
			var made *Comm
			if over = err != nil || d.Calls == 0; !over { // a worker has begun it
				if s := p.staff(d); s.err == nil && slices.Contains(s.members, p.rank) {
					made, err = p.join(s, seq)
				}
			}
			promise.Complete(made, err)
		})
		if world, err := f.Get(context.Background()); world != nil || err != nil || over {
			return world, err
		}
	}
}

// A staff is who the members of a communicator are that Replace makes. The ranks of a process
// share it.
type staff struct {
	lineage
	members  []int // their ranks in the pool
	replaced []int // their ranks in the communicator
	digest   uint64
	err      error // there can be none
}

// staff returns what a decision means, the same at all ranks.
func (p *pool) staff(d *errchan.Decision) *staff {
	return d.Meaning(func(d *errchan.Decision) any { return p.choose(d) }).(*staff)
}

func (p *pool) choose(d *errchan.Decision) *staff {
	was, members, err := readNote(d.Note, p.size)
	if err != nil {
		return &staff{err: err}
	}
	isDead := func(r int) bool { _, found := slices.BinarySearch(d.Dead, r); return found }
	var spares []int
	for r := len(p.workers); r < p.size; r++ {
		if !isDead(r) && !slices.Contains(members, r) {
			spares = append(spares, r)
		}
	}
	s := &staff{lineage: lineage{was.line + 1, make(map[int]int)}, members: members}
	for place, r := range members {
		if isDead(r) {
			s.replaced = append(s.replaced, place)
		}
	}
	if len(s.replaced) > len(spares) || len(s.replaced) == len(members) {
		return &staff{err: &SpareError{Places: s.replaced, Spares: len(spares)}}
	}
	for i, place := range s.replaced {
		s.taken[spares[i]] = was.taken[members[place]] + 1
		members[place] = spares[i]
	}
	digest := fnv.New64a()
	for _, r := range members {
		if n := was.taken[r]; n > 0 {
			s.taken[r] = n
		}
		fmt.Fprintln(digest, r)
	}
	s.digest = digest.Sum64()
	return s
}

// join makes the communicator of a staff, of which this rank is.
func (p *pool) join(s *staff, seq uint64) (*Comm, error) {
	if s.err != nil {
		return nil, s.err
	}
	made, err := p.deriveUnder(p.Comm, transport.ReplaceName(p.t.Epoch(), seq, s.digest), true, s.members, s.members, s.name())
	if made != nil {
		made.SetErrhandler(ErrorsPropagate)
		made.replaced = s.replaced
		p.proc.succeed(made, s.lineage)
	}
	return made, err
}
