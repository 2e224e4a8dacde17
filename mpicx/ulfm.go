package mpicx

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// User-level failure mitigation (paper 001). The black channel sees no process
// die, so there these say errors.ErrUnsupported, or that nobody died.

// An Errhandler says what a communicator does about processes that die.
type Errhandler int

const (
	// ErrorsPropagate has the first rank to meet a dead process tell all others,
	// which get a *CommCorruptedError.
	ErrorsPropagate Errhandler = iota
	// ErrorsReturn has operations that involve a dead process report that, by a
	// *ProcFailedError or ErrProcFailedPending, and nothing else happens by itself.
	ErrorsReturn
)

func unsupported(op string) *MPIError {
	e := mpiErrorf(op, ClassUnsupported, "backend %s can't, expected ulfm", Backend)
	e.err = errors.ErrUnsupported
	return e
}

// Revoke ends all operations on c, now and later, at every rank, but those that
// repair it: Shrink, Agree, Failed, AckFailed, Close (MPI_Comm_revoke). They
// report ErrRevoked or, under ErrorsPropagate, a *CommCorruptedError. It is not
// collective, may be called often, and is permanent. It waits for nobody.
func (c *Comm) Revoke(context.Context) error {
	if err := c.ready("Revoke", context.Background()); err != nil {
		return err
	}
	if c.mitigator == nil {
		return unsupported("Revoke")
	}
	if c.propagates() {
		err := fmt.Errorf("revoked by rank %d", c.rank)
		c.raise(newFailure(err, 1), &ledger.Raised{Cause: err, Corrupt: true})
		return nil
	}
	c.revoke()
	return nil
}

func (c *Comm) revoke() {
	(*listener)(c).Revoked(c.rank)
	c.mitigator.Revoke()
}

// Revoked ends what is pending.
func (l *listener) Revoked(by int) {
	c := (*Comm)(l)
	first := false
	c.proc.feed(func() { first = c.ledger.Revoked(by) })
	if first {
		c.t.Revoke(ErrRevoked)
		c.mitigator.Abandon(ErrRevoked)
		c.proc.feed(c.ledger.RevokeDone)
	}
}

// Revoked says whether this rank knows that c has been revoked
// (MPI_Comm_is_revoked), or corrupted, which is the same to others.
func (c *Comm) Revoked() bool {
	c.there("Revoked")
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.IsRevoked() || c.mitigator != nil && c.ledger.IsCorrupted()
}

// Agree is done at all living ranks with the same value: the bitwise AND of the
// flags of those that contributed (MPI_Comm_agree). It works on a communicator
// that is revoked or corrupted. If a rank has died, Agree reports that to all by
// the same *ProcFailedError, whose Flag is what was agreed; but not if all living
// ranks had acknowledged the death. Under ErrorsPropagate, on a communicator that
// was not broken, it is a *CommCorruptedError.
//
// If an error of the communicator comes while Agree is pending, it ends with that,
// a *PropagatedError or *CommCorruptedError, and nothing is agreed: all ranks get
// the error, and call Agree again if they still want to. All ranks make their calls
// of Agree and Shrink on a communicator in the same order; otherwise all get an
// *MPIError that says so.
func (c *Comm) Agree(flag int) *future.Future[int] {
	if c == nil {
		return nowhere[int]("Agree")
	}
	return repair(c, errchan.Proposal{Call: errchan.Agree, Flag: flag, Acked: c.acknowledged()}, agreedOn)
}

func agreedOn(r *repairing[int], d *errchan.Decision) {
	c := r.comm
	switch {
	case len(d.Unacked) == 0:
		r.promise.Complete(d.Flag, nil)
	case c.propagates() && !r.broken:
		if c.afterCorruption(func() { r.fail(c.unreported()) }) {
			c.lose() // so that those whom the decision has not reached end like this one
		} else {
			r.fail(c.unreported())
		}
	default:
		r.fail(&ProcFailedError{Ranks: slices.Clone(d.Unacked), Flag: d.Flag})
	}
}

// Shrink makes a communicator of the living ranks, in their order
// (MPI_Comm_shrink). It is collective among them and works on a communicator that
// is revoked or corrupted. Every death that a member had been told of is excluded.
// Somebody may have died since: the first use of the new communicator tells. An
// error that comes while Shrink is pending ends it as it does Agree. A rank that has
// left Guard by a panic or runtime.Goexit, or has returned from Run, is no member
// either if it does not call Shrink; Allgather on the new communicator what each
// was in the old one to learn who is.
func (c *Comm) Shrink() *future.Future[*Comm] {
	return repair(c, errchan.Proposal{Call: errchan.Shrink, Flag: whole}, func(r *repairing[*Comm], d *errchan.Decision) {
		living := d.Meaning(c.survivors).(*survivors)
		parent := c
		if d.Flag != whole && c.parent != nil { // no more errors of c can come
			parent = c.parent
		}
		name := transport.ShrinkName(r.id.Epoch, r.id.Seq, living.without)
		c.deriveUnder(parent, name, true, living.members, living.worldRanks, fmt.Sprintf("%s.shrink%d", c.name, r.id.Seq), func(d *Comm, err error) {
			r.promise.Complete(d, mpiError("Shrink", err))
		})
	})
}

// What a rank contributes to a Shrink: whether the communicator was whole, or broken
// for good.
const (
	whole  = -1
	broken = 0
)

// survivors are those who make a shrunk communicator.
type survivors struct {
	members, worldRanks []int
	without             uint64 // digest of the others
}

func (c *Comm) survivors(d *errchan.Decision) any {
	s := new(survivors)
	without := fnv.New64a()
	dead := d.Dead
	for r := range c.size {
		if len(dead) > 0 && dead[0] == r {
			dead = dead[1:]
			fmt.Fprintln(without, r)
		} else {
			s.members = append(s.members, r)
		}
	}
	s.worldRanks, s.without = c.worldRanksOf(s.members), without.Sum64()
	return s
}

// repair starts an operation that works on broken communicators too: an agreement,
// of which then ends the future.
func repair[T any](c *Comm, proposal errchan.Proposal, then func(*repairing[T], *errchan.Decision)) *future.Future[T] {
	if err := c.ready(proposal.Call.String(), context.Background()); err != nil {
		return future.Failed[T](err)
	}
	if c.mitigator == nil {
		return failed[T](c, unsupported(proposal.Call.String()))
	}
	c.proc.exitIfDead()
	f, p := future.New[T]()
	p.Keep(repairKeeper{(*keeper)(c)})
	r := &repairing[T]{comm: c, proposal: proposal, promise: p, then: then}
	// A rank that has unwound and goes on without having waited for the verdict (C1)
	// begins after that: it would end what begins now.
	if !c.isUnwinding() || !c.afterCorruption(r.start) {
		r.start()
	}
	return f
}

// repairing is what a repair needs until it is done.
type repairing[T any] struct {
	comm     *Comm
	proposal errchan.Proposal
	broken   bool // the communicator was, when it began
	id       errchan.Agreement
	promise  *future.Promise[T]
	then     func(*repairing[T], *errchan.Decision)
}

func (r *repairing[T]) start() {
	c := r.comm
	epoch := c.t.Epoch() // before the check, as in begin
	if err := c.unreported(); err != nil && (!isBroken(err) || !c.knows()) {
		r.fail(ofOperation(r.proposal.Call.String(), err))
		return
	}
	if r.broken = c.isBroken(); r.broken && r.proposal.Call == errchan.Shrink {
		r.proposal.Flag = broken
	}
	r.id = c.mitigator.Reserve(epoch, r.proposal.Call)
	c.mitigator.Propose(r.id, r.proposal, r.decided)
}

// knows says whether the program knows that c is corrupted, if it is. If not, its
// operation belongs before the corruption, and must not meet those of ranks that
// repair c.
func (c *Comm) knows() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Knows()
}

func (c *Comm) isBroken() bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Broken()
}

func (r *repairing[T]) decided(d *errchan.Decision, err error) {
	if err != nil {
		r.fail(r.comm.failure(r.proposal.Call.String(), err))
		return
	}
	r.comm.learn(d.Dead)
	if err := mismatch(r.proposal.Call, d); err != nil {
		r.fail(err)
		return
	}
	r.then(r, d)
}

func (r *repairing[T]) fail(err error) {
	r.comm.know(err)
	var none T
	r.promise.Complete(none, err)
}

// afterCorruption has then called once c is corrupted, which is to come, or its
// process dead. It does nothing, and says so, if c is of no use already.
func (c *Comm) afterCorruption(then func()) bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	if c.ledger.Broken() || c.ledger.IsClosed() || c.proc.dead.Load() {
		return false
	}
	c.afterwards = append(c.afterwards, then)
	return true
}

// resume calls what waited for the corruption.
func (c *Comm) resume() {
	c.proc.mu.Lock()
	then := c.afterwards
	c.afterwards = nil
	c.proc.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// mismatch returns the error of an operation that other ranks, in its place, have
// not called.
func mismatch(call errchan.Calls, d *errchan.Decision) error {
	if d.Calls == call {
		return nil
	}
	return mpiErrorf(call.String(), ClassOther, "the ranks call %v in the same place, expected all to call one", d.Calls)
}

// isBroken says whether err is for good, and no obstacle to repair.
func isBroken(err error) bool {
	return is[*CommCorruptedError](err) || errors.Is(err, ErrRevoked)
}

// isDeath says whether err only tells of the dead, or of what follows.
func isDeath(err error) bool {
	return is[*ProcFailedError](err) || errors.Is(err, ErrRevoked)
}

// repairKeeper lets Waits report their own result on a broken communicator (C4).
// They go on where others would be about to end, so the rank attends all the time.
type repairKeeper struct{ *keeper }

func (k repairKeeper) Park(ctx context.Context) (*future.Place, <-chan struct{}) {
	k.Watch()
	return k.keeper.Park(ctx)
}

func (k repairKeeper) Unpark(place *future.Place) {
	k.keeper.Unpark(place)
	k.Unwatch()
}

func (k repairKeeper) Verdict(ctx context.Context) error {
	return (*Comm)(k.keeper).verdictFor(ctx, ledger.TakeToRepair)
}

func (k repairKeeper) TryVerdict() (bool, error) { return k.tryVerdict(ledger.TakeToRepair) }

// agreed returns what completes p with a new communicator, or with why there is
// none. With the ULFM backend all ranks agree on that first: either each of them
// has it, or each has an error.
func (c *Comm) agreed(call errchan.Calls, epoch transport.Epoch, p *future.Promise[*Comm]) func(*Comm, error) {
	op := call.String()
	if c.mitigator == nil {
		return func(d *Comm, err error) { p.Complete(d, mpiError(op, err)) }
	}
	id := c.mitigator.Reserve(epoch, call)
	return func(made *Comm, err error) {
		proposal := errchan.Proposal{Call: call, Flag: -1}
		if err != nil {
			err = c.failure(op, err)
			proposal.Flag = 0
		}
		c.mitigator.Propose(id, proposal, func(d *errchan.Decision, over error) {
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

// learn notes the dead that an agreement told of.
func (c *Comm) learn(dead []int) {
	for _, r := range dead {
		(*listener)(c).Died(r)
	}
}

// Failed returns the ranks that this one knows to be dead, in the order in which
// it learned of them (MPI_Comm_get_failed): what it returned once is the beginning
// of what it returns later.
func (c *Comm) Failed() []int {
	c.there("Failed")
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Failed()
}

// AckFailed acknowledges the first n of Failed and returns how many are
// acknowledged (MPI_Comm_ack_failed). When all are, receives from AnySource go
// on; but if nobody else lives, a Wait for one ends it with a *ProcFailedError.
// Collective operations stay broken.
func (c *Comm) AckFailed(n int) (acked int) {
	c.there("AckFailed")
	c.disturbing.Lock()
	defer c.disturbing.Unlock()
	all := false
	c.proc.feed(func() { acked, all = c.ledger.Ack(n) })
	if all {
		c.disturb(nil)
	}
	return acked
}

func (c *Comm) acknowledged() []int {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	return c.ledger.Acknowledged()
}

// SetErrhandler sets what this rank does about processes that die on c, and on
// communicators that are derived from it later (MPI_Comm_set_errhandler). The
// default is ErrorsPropagate. The black channel never sees one die.
func (c *Comm) SetErrhandler(h Errhandler) {
	c.there("SetErrhandler")
	c.errhandler.Store(int32(h))
}
