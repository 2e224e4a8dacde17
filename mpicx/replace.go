package mpicx

import (
	"context"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/replace"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
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
	if c.number == 0 && c.ulfm != nil {
		return failed[*Comm](c.of(), notReplaceable(c.of()))
	}
	l := c.root().lineage
	proposal := errchan.Proposal{Call: errchan.Replace, Flag: whole, Note: locked(&l.mu, l.rescue.Lost)}
	return repair(c.of(), proposal, func(r *repairing[*Comm], d *errchan.Decision) {
		call := r.call
		r.call = 0
		// From here on no error of c ends the call.
		l.replaces.End(call, func() { c.replace(r, d) })
	})
}

// Replaced returns the ranks that Replace brought into the communicator. These ranks have none of
// the data of the others. It is nil if Replace did not make the communicator.
func (c *Comm) Replaced() []int {
	c.mustExist("Replaced")
	return slices.Clone(c.replaced)
}

// Incarnation is how often the place of this rank has been taken over since the job began. It
// is 0 for a process that was there from the start.
func (c *Comm) Incarnation() int {
	c.mustExist("Incarnation")
	return c.root().lineage.membership().Incarnation(c.proc.rank)
}

// replace ends a call of Replace. d is the decision of the members of c.
func (c *comm) replace(r *repairing[*Comm], d *errchan.Decision) {
	l := c.root().lineage
	next, err := l.successor(c, d)
	var made *comm
	switch {
	case err != nil:
	// The rescues are invited before this rank makes its side, and even if it can't make one: every
	// member that has the decision invites them, so no death can prevent it (package replace).
	case l.pool != nil:
		l.adopt(next)
		made, err = l.join(next, c)
	default:
		l.adopt(next)
		made, err = c.deriveUnder(c.heir(d), c, transport.ReplaceName(r.id.Epoch, r.id.Seq, 0), true, nil, c.ledger.Ranks(), next.Name())
	}
	if err != nil {
		r.fail(mpiError("Replace", err))
		return
	}
	l.succeed(made)
	made.inheritStop(c)
	r.happened(observe.Replace, made)
	r.end(made.handle(), nil)
}

func notReplaceable(c *comm) error {
	return mpiErrorf("Replace", ClassComm, "%s can't be replaced, expected the world, the last communicator that Replace made, or one that Shrink made of these", c.name)
}

// newLineage returns the lineage of the rank whose first communicator is root.
func newLineage(root *comm, j *job) *lineage {
	workers := root.size
	if j.workers != nil {
		workers = len(j.workers)
	}
	return &lineage{workers: j.workers, start: j.start, rescue: replace.New(root.rank, root.size, workers)}
}

// membership returns the membership of the newest communicator.
func (l *lineage) membership() *replace.Membership { return locked(&l.mu, l.rescue.Newest) }

// last returns the newest communicator.
func (l *lineage) last() *comm { return locked(&l.mu, func() *comm { return l.newest }) }

// succeed makes c, which has the newest membership, the newest communicator. Replace refuses any
// with an older membership.
func (l *lineage) succeed(c *comm) {
	c.number = l.membership().Number
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest = c
}

// successor returns the membership of the communicator that replaces c according to the decision of
// c's members. It is the same at all ranks.
func (l *lineage) successor(c *comm, d *errchan.Decision) (*replace.Membership, error) {
	if c.number != l.membership().Number {
		return nil, notReplaceable(c)
	}
	type result struct {
		next *replace.Membership
		err  error
	}
	s := d.Meaning(func(d *errchan.Decision) any {
		l.mu.Lock()
		defer l.mu.Unlock()
		next, left, err := l.rescue.Successor(c.worldRanksOf(upTo(c.size)), d.Dead, d.Note)
		if err == nil && next == nil {
			err = &SpareError{Places: slices.Clone(d.Dead), Spares: left}
		}
		return result{next, err}
	}).(result)
	return s.next, s.err
}

// adopt makes next the newest membership, and has its fresh ranks started and its rescues invited.
func (l *lineage) adopt(next *replace.Membership) {
	if l.start != nil {
		for _, r := range next.Rescues() {
			l.start(r)
		}
	}
	l.feed(func(m *replace.Machine) *replace.Fate {
		m.Adopt(next)
		return nil
	})
}

// join makes the communicator of a membership from the pool, with the errhandler of like.
func (l *lineage) join(m *replace.Membership, like *comm) (*comm, error) {
	name := transport.ReplaceName(l.pool.t.Epoch(), uint64(m.Number), m.Digest())
	made, err := l.pool.deriveUnder(l.pool, like, name, true, m.Members, m.Members, m.Name())
	if made != nil {
		made.replaced = m.Places
	}
	return made, err
}

// isSpare says whether the rank begins parked: it is a spare or a fresh rank.
func (l *lineage) isSpare() bool { return l.pool != nil && l.pool.rank >= len(l.workers) }

// world returns the communicator that the rank's program begins with. A spare or a fresh rank waits
// here, and gets nil if no Replace takes it.
func (l *lineage) world() (world *comm, err error) {
	switch {
	case l.pool == nil:
		return l.newest, nil
	case l.isSpare():
		world, err = l.park()
	default:
		world, err = l.pool.deriveUnder(l.pool, nil, transport.FirstName(), true, l.workers, l.workers, "world")
		err = mpiError("Run", err)
	}
	if world != nil {
		l.succeed(world)
	}
	return world, err
}

// park waits until this rank, a spare or a fresh rank, is invited, and returns the new
// communicator. If the other ranks have ended without inviting it, park returns nil and, if all of
// them have died, an error.
func (l *lineage) park() (*comm, error) {
	p := l.pool.proc
	p.stage.Store(stageParked)
	defer p.stage.Store(stageRunning)
	defer l.pool.waits("Parked")()
	f, promise := future.New[*comm]()
	waiting.Of(promise.Future()).Keep(l.pool.keeper)
	l.feed(func(m *replace.Machine) *replace.Fate {
		l.decided = func(f *replace.Fate) { promise.Complete(l.meet(f)) }
		return m.Wait()
	})
	<-f.Done() // Get would keep a core busy if ranks are processes
	world, err := f.Get(context.Background())
	if world != nil {
		p.observer.Happened(observe.Event{Kind: observe.Replace, As: &world.rank, Size: world.size, Text: world.name})
	}
	return world, err
}

// meet returns what park returns, according to this rank's fate. If ranks are goroutines, it is no
// error that all others have died, because Run does not report ranks that die there: a test has
// planned their deaths.
func (l *lineage) meet(f *replace.Fate) (*comm, error) {
	switch {
	case f.Membership != nil:
		return l.join(f.Membership, nil)
	case f.Err != replace.ErrAlone:
		return nil, mpiError("Run", f.Err)
	case l.pool.proc.driver == nil:
		return nil, nil
	}
	return nil, fmt.Errorf("mpicx: Run: all working ranks have ended, and this rank was not taken in: %w", &ProcFailedError{Ranks: upTo(l.pool.rank)})
}

// listen connects the rank's machine with those of the other ranks of the pool.
func (l *lineage) listen() (err error) {
	if l.rescuers, err = l.pool.t.Sub(transport.RescueName(), nil); err == nil {
		l.rescuers.Listen((*rescuer)(l))
	}
	return mpiError("Run", err)
}

// feed gives the rank's machine an input, and carries out what follows. It does so without mu:
// decided makes a communicator, which feeds the machine again if the transport has failed, and Poke
// may call Next, which locks mu.
func (l *lineage) feed(input func(*replace.Machine) *replace.Fate) {
	l.mu.Lock()
	fate := input(l.rescue)
	decided := l.decided
	l.mu.Unlock()
	if fate != nil {
		decided(fate)
	}
	if l.rescuers != nil {
		l.rescuers.Poke()
	}
}

// giveUp notes that this rank can't take a place any more.
func (l *lineage) giveUp(err error) {
	l.feed(func(m *replace.Machine) *replace.Fate { return m.Fail(err) })
}

// rescuer is the listener of a rank's machine.
type rescuer lineage

var _ transport.Listener = (*rescuer)(nil)

// Take receives a message.
func (l *rescuer) Take(from int, payload []byte) {
	(*lineage)(l).feed(func(m *replace.Machine) *replace.Fate { return m.Receive(from, payload) })
}

// Next returns the next message.
func (l *rescuer) Next() (to int, payload []byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.rescue.Next()
	return m.To, m.Payload, ok
}

// Died notes that a rank of the pool has died.
func (l *rescuer) Died(rank int) {
	if rank == l.pool.rank {
		(*lineage)(l).giveUp(transport.ErrDied)
		return
	}
	(*lineage)(l).feed(func(m *replace.Machine) *replace.Fate { return m.Died(rank) })
}

// Purpose names the purpose of the messages.
func (l *rescuer) Purpose([]byte) string { return "replace" }
