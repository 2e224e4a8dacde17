package mpicx

import (
	"context"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// trouble is what this rank knows of errors on one communicator.
type trouble struct {
	mu         sync.Mutex
	round      uint64
	noticed    bool                // a round is open
	joined     bool                // and this rank has joined it
	verdicts   []error             // that no Wait has reported, oldest first
	corrupted  *CommCorruptedError // every Wait reports it
	raised     []*raised           // here, and not resolved yet
	moving     int                 // not 0: to the next epoch, and no Wait reports why before
	closed     bool
	revoked    bool
	unwound    bool     // this rank has corrupted it, which it does once
	afterwards []func() // what waits for the corruption: see afterCorruption
	losing     bool     // it has told the channel that a process is missing

	deathsMu sync.Mutex
	deaths   deaths

	scopes   map[*scope]struct{} // of Try and Guard calls that are running
	children map[*Comm]struct{}
}

// raised is an error that this rank signalled. Verdict is set once it is resolved.
type raised struct{ cause, verdict error }

func (t *trouble) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// isTroubled says whether c or one it is derived from has something to report:
// an error of a communicator interrupts all that derive from it (D1).
func (c *Comm) isTroubled() bool {
	for ; c != nil; c = c.parent {
		if c.troubled.Load() {
			return true
		}
	}
	return false
}

func (c *Comm) isCorrupted() bool {
	c.trouble.mu.Lock()
	defer c.trouble.mu.Unlock()
	return c.trouble.corrupted != nil
}

// isUnwinding says whether this rank has corrupted c, or what it is derived from, and
// knows of no verdict so far. What it begins then must reach nobody: a peer that has
// not heard of the corruption would go on with it.
func (c *Comm) isUnwinding() bool {
	return !c.lineage(func(a *Comm) bool {
		t := &a.trouble
		t.mu.Lock()
		defer t.mu.Unlock()
		return !t.unwound || t.corrupted != nil
	})
}

// update sets troubled; mu is held.
func (c *Comm) update() {
	t := &c.trouble
	c.troubled.Store(t.noticed || len(t.verdicts) > 0 || t.corrupted != nil || t.revoked || t.closed || c.proc.dead.Load())
}

// peek returns c's own oldest error to report, and takes it off the list if
// told to. That c is revoked is nothing to take: what was pending has ended with it,
// and what was done keeps its result.
func (c *Comm) peek(take bool) error {
	t := &c.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case take && t.moving > 0:
	case len(t.verdicts) > 0:
		err := t.verdicts[0]
		if take {
			t.verdicts = t.verdicts[1:]
			c.update()
		}
		return err
	case t.corrupted != nil:
		return t.corrupted
	case t.revoked && !take:
		return ErrRevoked
	case t.closed:
		return mpiErrorf("use", ClassComm, "%s is closed", c.name)
	}
	return nil
}

// unreported returns the error that the next Wait reports, if it is resolved.
func (c *Comm) unreported() error { return c.oldest(false) }

func (c *Comm) oldest(take bool) (err error) {
	c.lineage(func(a *Comm) bool {
		if a.troubled.Load() && (a == c || !a.isLost()) {
			err = a.peek(take)
		}
		return err == nil
	})
	return err
}

// isLost says whether a has nothing to report but that it can't be used, which
// does not concern the communicators derived from it.
func (c *Comm) isLost() bool {
	t := &c.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.verdicts) == 0 && (t.corrupted != nil || t.revoked || t.closed)
}

// report returns the error to report, or a channel to wait for it, or neither.
func (c *Comm) report() (<-chan struct{}, error) {
	var wait <-chan struct{}
	if c.isUnresolved() {
		wait = c.proc.nextChange()
		if !c.isUnresolved() { // asked again, so that the change is not missed
			wait = nil
		}
	}
	return wait, c.oldest(true)
}

// isUnresolved says whether c or one it is derived from has noticed an error, and
// will report it.
func (c *Comm) isUnresolved() bool {
	return !c.lineage(func(a *Comm) bool {
		t := &a.trouble
		t.mu.Lock()
		defer t.mu.Unlock()
		return (!t.noticed || t.corrupted != nil) && t.moving == 0
	})
}

// verdict blocks until the errors that this rank has noticed are resolved, and
// returns the oldest, or nil if another goroutine has reported it.
func (c *Comm) verdict(ctx context.Context) error {
	if !c.isTroubled() {
		return nil
	}
	for {
		wait, err := c.report()
		c.proc.exitIfDead() // it may have died since the change that is waited for
		if err != nil || wait == nil {
			return err
		}
		ctx = patient(ctx)
		place := c.proc.enter(c)
		changed := c.proc.await(wait, ctx.Done())
		c.proc.leave(place) // before it takes the verdict: see attending
		if !changed && ctx.Err() != nil && patient(ctx) == ctx {
			return context.Cause(ctx)
		}
	}
}

// join agrees to the end of the round that was noticed, if it is still open.
func (c *Comm) join(round uint64) {
	t := &c.trouble
	t.mu.Lock()
	if t.round != round {
		t.mu.Unlock()
		return
	}
	due := t.noticed && !t.joined
	t.joined = t.noticed
	t.mu.Unlock()
	c.proc.paid(c)
	if due {
		c.channel.Join(round, c.freeze())
	}
}

// freeze has no agreement decided on c and what is derived from it, whose rounds this
// rank is about to join, and returns the last ones.
func (c *Comm) freeze() []errchan.Settled {
	if c.mitigator == nil {
		return nil
	}
	settled := c.mitigator.Freeze()
	for _, d := range c.derived() {
		settled = append(settled, d.freeze()...)
	}
	return settled
}

// isFrozen says whether a round of c, or of one that it is derived from, is open that
// this rank has joined.
func (c *Comm) isFrozen() bool {
	return !c.lineage(func(a *Comm) bool {
		t := &a.trouble
		t.mu.Lock()
		defer t.mu.Unlock()
		return !t.noticed || !t.joined
	})
}

// complete ends the agreements of c, and of what is derived from it, that a verdict
// says were decided.
func (c *Comm) complete(settled []errchan.Settled) {
	if c.mitigator == nil || len(settled) == 0 {
		return
	}
	c.mitigator.Complete(settled)
	for _, d := range c.derived() {
		d.complete(settled)
	}
}

// raise has every rank get a verdict with f. It returns nil if the communicator
// is corrupted already.
func (c *Comm) raise(f Failure, corrupt bool, cause error) *raised {
	return c.raiseAndLeave(f, corrupt, false, cause)
}

func (c *Comm) raiseAndLeave(f Failure, corrupt, leaving bool, cause error) *raised {
	t := &c.trouble
	t.mu.Lock()
	if t.corrupted != nil || t.revoked || t.closed || corrupt && t.unwound || c.proc.dead.Load() {
		t.mu.Unlock()
		return nil
	}
	t.unwound = t.unwound || corrupt
	r := &raised{cause: cause}
	t.raised = append(t.raised, r)
	t.noticed, t.joined = true, true
	c.update()
	round := t.round
	t.mu.Unlock()
	c.proc.paid(c)
	c.log(levelOf(corrupt), "signal", round, "code", f.Code, "message", f.Message, "corrupt", corrupt)
	settled := c.freeze()
	if c.mitigator != nil && leaving {
		c.mitigator.Unwind(f.encode(), settled)
	} else {
		c.channel.Raise(f.encode(), corrupt, settled)
	}
	return r
}

// listener is the Comm as its error channel sees it.
type listener Comm

var _ errchan.Client = (*listener)(nil)

// Noticed opens a round at this rank.
func (l *listener) Noticed(round uint64, by int, corrupt bool) {
	c := (*Comm)(l)
	t := &c.trouble
	t.mu.Lock()
	first := !t.noticed
	t.round = round
	if first {
		t.noticed, t.joined = true, false
		c.update()
	}
	due := !t.joined
	atOnce := t.closed || t.unwound || len(t.raised) > 0 || c.proc.leaving.Load()
	t.mu.Unlock()
	if by != c.Rank() {
		c.log(levelOf(corrupt), "notice", round, "from", by)
	}
	c.interrupt(corrupt)
	if due {
		c.proc.owes(c, round)
		if atOnce {
			c.join(round)
		}
	}
}

// Resolved ends it: whatever was pending ends with the verdict.
func (l *listener) Resolved(v *errchan.Verdict) {
	c := (*Comm)(l)
	t := &c.trouble
	t.mu.Lock()
	own := 0 // of the reports: the first that this rank raised
	for _, r := range v.Reports {
		if r.Rank == c.Rank() {
			own++
		}
	}
	own = min(own, len(t.raised))
	var causes []error
	for _, r := range t.raised[:own] {
		causes = append(causes, r.cause)
	}
	var err error
	if common := (verdict{comm: c, causes: together(causes)}); v.Corrupt {
		t.corrupted = &CommCorruptedError{Failures: failuresOf(v), Dead: v.Dead, verdict: common}
		err = t.corrupted
		own = len(t.raised)
	} else {
		err = &PropagatedError{Failures: failuresOf(v), verdict: common}
		if !t.closed {
			t.verdicts = append(t.verdicts, err)
		}
	}
	for _, r := range t.raised[:own] {
		r.verdict = err
	}
	t.raised = slices.Clone(t.raised[own:])
	t.losing = t.losing && t.corrupted == nil
	t.noticed = len(t.raised) > 0 || t.losing
	t.joined = len(t.raised) > 0 && c.mitigator == nil // else it joins when the round is noticed
	t.round = v.Round + 1
	t.moving++
	c.update()
	t.mu.Unlock()

	c.proc.paid(c)
	if v.Corrupt {
		c.log(levelOf(true), "corrupted", v.Round, "failures", len(v.Reports))
		c.interrupt(true)
	} else {
		c.log(levelOf(false), "resolved", v.Round, "failures", len(v.Reports))
	}
	c.complete(v.Settled)
	c.advance(c.generation, err)
	c.moved()
	c.goOn()
	c.proc.leaveWhenTold()
}

// moved lets Waits report what ended the epoch. Before that, a program that was
// told could begin operations in the old one, and they would end with the same
// error again.
func (c *Comm) moved() {
	t := &c.trouble
	t.mu.Lock()
	t.moving--
	t.mu.Unlock()
	c.proc.change()
}

// advance moves c, and what is derived from it, to the epoch after an error of
// the given generation: messages of before are gone, futures that were pending
// are done with the verdict, and their buffers free (P3, P4, D1).
func (c *Comm) advance(generation int, err error) {
	if c.mitigator != nil {
		c.mitigator.Advance(generation, err, c.isFrozen()) // first: what begins in the new epoch finds it there
	}
	c.t.Advance(generation, err)
	for _, d := range c.derived() {
		corrupted, ok := err.(*CommCorruptedError)
		if ok {
			d.inherit(corrupted)
		}
		d.advance(generation, err)
		if ok {
			d.moved()
			d.goOn()
		}
	}
}

// inherit takes the corruption of a communicator that c is derived from: if one of
// c's ranks unwound, c is corrupted as well; else its next Wait reports the error.
func (c *Comm) inherit(err *CommCorruptedError) {
	member := func(rank int) bool {
		return c.worldRanks == nil || slices.Contains(c.worldRanks, err.comm.worldRank(rank))
	}
	gone := slices.ContainsFunc(err.Dead, member) ||
		slices.ContainsFunc(err.Failures, func(f Failure) bool { return member(f.Rank) })
	t := &c.trouble
	t.mu.Lock()
	switch {
	case t.corrupted != nil || t.closed:
	case gone:
		t.corrupted = err
	default:
		t.verdicts = append(t.verdicts, err)
	}
	t.moving++
	c.update()
	t.mu.Unlock()
}

func (c *Comm) derived() []*Comm {
	c.trouble.mu.Lock()
	defer c.trouble.mu.Unlock()
	all := make([]*Comm, 0, len(c.trouble.children))
	for d := range c.trouble.children {
		all = append(all, d)
	}
	return all
}

// adopt makes d, which was begun in epoch e, one of c's children. It returns the
// error of c that came in between, if one did.
func (c *Comm) adopt(d *Comm, e transport.Epoch) error {
	t := &c.trouble
	t.mu.Lock()
	if t.children == nil {
		t.children = make(map[*Comm]struct{})
	}
	t.children[d] = struct{}{}
	t.mu.Unlock()
	if d.mitigator != nil && c.isFrozen() {
		d.mitigator.Freeze()
	}
	if c.t.Epoch() == e {
		return nil
	}
	d.close()
	if err := c.unreported(); err != nil {
		return err
	}
	return mpiErrorf("Dup", ClassComm, "an error of %s came in between", c.name)
}

// close ends the use of c at this rank, and says whether it knows of no error that is
// on its way. The error channel stays, and joins what peers that have not closed c yet
// may raise.
func (c *Comm) close() (quiet bool) {
	t := &c.trouble
	t.mu.Lock()
	t.closed = true
	t.verdicts = nil
	c.update()
	quiet = !t.noticed
	round := t.round
	t.mu.Unlock()
	c.join(round)
	c.forget()
	return quiet
}

// forget takes c from what its parent has, unless it is in use, or something is
// that is derived from it and that errors reach through it (D1).
func (c *Comm) forget() {
	if c.parent == nil {
		return
	}
	c.trouble.mu.Lock()
	over := c.trouble.closed && len(c.trouble.children) == 0
	c.trouble.mu.Unlock()
	if over {
		c.parent.trouble.mu.Lock()
		delete(c.parent.trouble.children, c)
		c.parent.trouble.mu.Unlock()
		c.parent.forget()
	}
}

// Err returns the error that the next Wait on c would report, and reports
// nothing: nil if there is none, or it is not resolved yet. It never blocks.
// A rank that computes may ask now and then; Try's context tells it unasked.
func (c *Comm) Err() error {
	if !c.isTroubled() {
		return nil
	}
	c.proc.exitIfDead()
	err := c.unreported()
	if err == nil {
		c.proc.join()
		err = c.unreported()
	}
	return err
}
