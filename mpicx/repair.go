package mpicx

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Agree completes at all living ranks with the same value: the bitwise AND of the flags of all
// contributors (MPI_Comm_agree). It also works on a communicator that is revoked or corrupted.
// If a rank has died, Agree ends with the same *ProcFailedError at all ranks, whose Flag is the
// value, unless all living ranks had acknowledged the death. Under ErrorsPropagate, on a
// communicator that was not broken, it ends with a *CommCorruptedError instead. [Comm.AgreeFailed]
// agrees on who is dead instead of on a flag.
//
// If an error of the communicator arrives while Agree is pending, Agree ends with that error, a
// *PropagatedError or *CommCorruptedError, and nothing is agreed. All ranks get the error, and call
// Agree again if they still need it. All ranks call Agree, AgreeFailed and Shrink on a communicator
// in the same order; otherwise all get an *MPIError that says so.
//
// With the black channel, which survives no death, Agree and AgreeFailed are the same as long as
// the communicator is not corrupted. On a corrupted one they end with errors.ErrUnsupported.
func (c *Comm) Agree(flag int) *future.Future[int] {
	return repair(c.of(), errchan.Proposal{Call: errchan.Agree, Flag: flag}, agreedOn)
}

func agreedOn(r *repairing[int], d *errchan.Decision) {
	c := r.comm
	r.happened(observe.Agree, nil)
	switch {
	case len(d.Unacked) == 0:
		r.end(d.Flag, nil)
	case c.propagates() && !r.broken:
		if c.afterCorruption(func() { r.fail(c.untold()) }) {
			c.raiseDeath() // ranks that the decision has not reached then end with the same error
		} else {
			r.fail(c.untold())
		}
	default:
		_, returned := c.whoReturned(d.Unacked)
		r.fail(&ProcFailedError{slices.Clone(d.Unacked), d.Flag, returned, c.parent != nil})
	}
}

// AgreeFailed completes at all living ranks with the same set: the ranks that at least one of
// them knew to be dead, in ascending order (proposed for MPI as MPI_Comm_agree_failed,
// mpi-issues#1119). Afterwards Failed contains them at every rank. Like Agree, it works on a
// communicator that is revoked or corrupted, and ends with an error of the communicator that
// arrives meanwhile. Unlike Agree, it does not report a death as an error, whatever the
// Errhandler. [Comm.Failed] is what this rank alone knows.
func (c *Comm) AgreeFailed() *future.Future[[]int] {
	return repair(c.of(), errchan.Proposal{Call: errchan.AgreeFailed}, func(r *repairing[[]int], d *errchan.Decision) {
		r.happened(observe.Agree, nil)
		r.end(slices.Clone(d.Dead), nil)
	})
}

// Shrink makes a communicator of the living ranks, in their order (MPI_Comm_shrink). It is
// collective among them and works on a communicator that is revoked or corrupted. The new
// communicator has no rank whose death a member had been told of. A rank may have died since:
// the first use of the new communicator reports that. An error that arrives while Shrink is
// pending ends it, as it ends Agree.
//
// Shrink needs -tags ulfm: with the black channel it ends with errors.ErrUnsupported.
//
// Use Shrink if the program can continue with fewer ranks, and [Comm.Replace] if it needs the same
// number, in the same places, and the job has spares.
//
// A rank that has left Guard by a panic or runtime.Goexit, or that has returned from Run, is
// not a member unless it calls Shrink. To learn who is a member, exchange the old ranks by
// Allgather on the new communicator, or translate its Group.
func (c *Comm) Shrink() *future.Future[*Comm] {
	return shrink(c.of(), func(made *comm, _ []int) *Comm { return made.handle() })
}

// shrink is Shrink, with a result that as makes from the new communicator and the dead.
func shrink[T any](c *comm, as func(made *comm, dead []int) T) *future.Future[T] {
	return repair(c, errchan.Proposal{Call: errchan.Shrink, Flag: whole}, func(r *repairing[T], d *errchan.Decision) {
		living := d.Meaning(c.survivors).(*survivors)
		name := transport.ShrinkName(r.id.Epoch, r.id.Seq, living.without)
		made, err := c.deriveUnder(c.heir(d), c, name, true, living.members, living.worldRanks, fmt.Sprintf("%s.shrink%d", c.name, r.id.Seq))
		if err != nil {
			r.end(*new(T), mpiError("Shrink", err))
			return
		}
		made.number = c.number
		r.happened(observe.Shrink, made)
		r.end(as(made, d.Dead), nil)
	})
}

// heir returns the parent of the communicator that a repair of c makes. It is c itself, unless no
// more errors of c can come.
func (c *comm) heir(d *errchan.Decision) *comm {
	if d.Flag != whole && c.parent != nil {
		return c.parent
	}
	return c
}

// Flags of a proposal to Shrink or Replace: the communicator was whole, or broken.
const (
	whole  = -1
	broken = 0
)

// survivors are the members of a shrunk communicator.
type survivors struct {
	members, worldRanks []int
	without             uint64 // digest of the ranks that are not members
}

func (c *comm) survivors(d *errchan.Decision) any {
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

// repair begins an operation that works on broken communicators too. The operation is an
// agreement; then gets the decision, and completes the future.
func repair[T any](c *comm, proposal errchan.Proposal, then func(*repairing[T], *errchan.Decision)) *future.Future[T] {
	if err := c.ready(proposal.Call.String(), context.Background()); err != nil {
		return future.Failed[T](err)
	}
	c.proc.exitIfDead()
	c.notInReduction("begins", proposal.Call.String())
	f, end := begins[T](c, proposal.Call.String(), ledger.TakeToRepair)
	r := &repairing[T]{comm: c, proposal: proposal, end: end, onDecision: then}
	switch proposal.Call {
	case errchan.Agree:
		r.proposal.Acked = c.acknowledged()
	case errchan.Replace:
		r.call = c.root().lineage.replaces.Begin()
	}
	// If this rank has unwound and not waited for the verdict (C1), the repair begins after the
	// verdict, which would end it otherwise.
	if !c.isUnwinding() || !c.afterCorruption(r.start) {
		r.start()
	}
	return f
}

// repairing is a repair that is not done.
type repairing[T any] struct {
	comm       *comm
	proposal   errchan.Proposal
	broken     bool // the communicator was broken when the repair began
	id         errchan.Agreement
	call       uint64 // of a Replace whose decision is not known: its number among the rank's calls
	end        func(T, error)
	onDecision func(*repairing[T], *errchan.Decision)
}

func (r *repairing[T]) start() {
	c := r.comm
	epoch := c.t.Epoch() // before the check, as in begin
	if err := c.untold(); err != nil && (!meansBroken(err) || !c.knows()) {
		r.fail(ofOperation(r.proposal.Call.String(), err))
		return
	}
	if err := c.untoldAbove(); err != nil {
		r.fail(err)
		return
	}
	if r.broken = c.isBroken(); r.broken && r.proposal.Call != errchan.Agree {
		r.proposal.Flag = broken
	}
	if c.ulfm == nil && (r.broken || r.proposal.Call&(errchan.Agree|errchan.AgreeFailed) == 0) {
		r.fail(unsupported(r.proposal.Call.String(), c.untold()))
		return
	}
	by := c.agreements()
	r.id = by.Reserve(epoch, r.proposal.Call)
	r.happened(observe.Repair, nil)
	by.Propose(r.id, r.proposal, r.decided)
}

// untoldAbove returns an error of an ancestor that the program was not told, or nil. No operation
// on a broken communicator tells it. But other ranks may have been told it instead of c's own
// error, and then they do not repair c (D2).
func (c *comm) untoldAbove() error {
	_, err := c.lookIn(context.Background(), ledger.PeekToRepair, nil)
	if v, ok := err.(interface{ isOf(*comm) bool }); ok && !v.isOf(c) {
		return err
	}
	if e := locked(&c.proc.mu, c.ledger.UntoldAbove); e != nil {
		return e.Face
	}
	return nil
}

func (r *repairing[T]) decided(d *errchan.Decision, err error) {
	if err != nil {
		r.fail(r.comm.failure(r.proposal.Call.String(), err))
		return
	}
	r.comm.learn(d.Dead)
	if slices.Contains(d.Dead, r.comm.rank) {
		r.fail(mpiError(r.proposal.Call.String(), errLeftBehind))
		return
	}
	if err := mismatch(r.proposal.Call.String(), r.proposal.Call, d); err != nil {
		r.fail(err)
		return
	}
	r.onDecision(r, d)
}

func (r *repairing[T]) fail(err error) {
	r.comm.know(err)
	if r.call > 0 {
		r.comm.root().lineage.replaces.End(r.call, func() {})
	}
	var none T
	r.end(none, err)
}

// happened tells the observer that the repair has begun, or has ended, with a communicator if it
// makes one.
func (r *repairing[T]) happened(kind observe.Kind, made *comm) {
	if r.comm.proc.observer == nil {
		return
	}
	e := observe.Event{Kind: kind, Op: r.proposal.Call.String(), Comm: r.comm.name, Round: r.id.Seq, Epoch: fmt.Sprint(r.id.Epoch)}
	if made != nil {
		e.As, e.Size, e.Text = &made.rank, made.size, made.name
	}
	r.comm.proc.observer.Happened(e)
}

// afterCorruption calls then when c is corrupted, this rank has died or the job is over. A
// corruption is under way. If one of these is true already, or c is broken or closed,
// afterCorruption does nothing and returns false.
func (c *comm) afterCorruption(then func()) bool {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	if c.ledger.Broken() || c.ledger.IsClosed() || c.proc.dead.Load() || c.proc.stage.Load() == stageOver {
		return false
	}
	c.afterwards = append(c.afterwards, then)
	return true
}

// resume calls the functions that waited for the corruption.
func (c *comm) resume() {
	c.proc.mu.Lock()
	then := c.afterwards
	c.afterwards = nil
	c.proc.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// agreements returns the object that decides c's agreements.
func (c *comm) agreements() interface {
	Reserve(transport.Epoch, errchan.Calls) errchan.Agreement
	Propose(errchan.Agreement, errchan.Proposal, func(*errchan.Decision, error))
} {
	if c.ulfm != nil {
		return c.ulfm
	}
	return (*voter)(c)
}

// voter makes the agreements of a Comm with the black channel, where no death is survived. They are
// numbered separately from collective calls: a rank that has given up a Barrier may be in an Agree
// with ranks that come to the Barrier later.
type voter comm

// Reserve takes this rank's place in the next agreement of epoch e.
func (c *voter) Reserve(e transport.Epoch, _ errchan.Calls) errchan.Agreement {
	c.proc.mu.Lock()
	defer c.proc.mu.Unlock()
	v := &c.voting
	if e > v.epoch {
		v.epoch, v.made = e, 0
	}
	if e == v.epoch { // not if e is over: then the messages match nothing
		v.made++
	}
	return errchan.Agreement{Epoch: e, Seq: v.made}
}

// Propose begins an agreement that ends as a TryAll does (see ledger.Vote): the ranks meet in a
// barrier, and then vote. Each sends its proposal together with its vote.
func (c *voter) Propose(id errchan.Agreement, p errchan.Proposal, done func(*errchan.Decision, error)) {
	b := &ballot{comm: (*comm)(c), name: p.Call.String(), id: id, done: done}
	binary.LittleEndian.PutUint16(b.paper[1:], ^uint16(p.Call))
	binary.LittleEndian.PutUint64(b.paper[3:], uint64(p.Flag))
	c.proc.feed(func() { b.entry = c.ledger.AskUnaided(b) })
	b.exchange(1, c.chooser.ByMessages().Barrier(nil), b.met)
}

// ballot is this rank's part in an agreement by votes. It needs no goroutine that waits.
type ballot struct {
	comm  *comm
	name  string // of the operation
	entry *ledger.Vote
	id    errchan.Agreement
	// paper is this rank's vote (1 is yes), the complement of its call, and its flag. When the
	// votes are counted it is the AND of all.
	paper [11]byte
	done  func(*errchan.Decision, error)
}

func (b *ballot) exchange(phase int, a collective.Algorithm, done ender) {
	x := &collective.Exchange{Name: b.name, Signature: call{Kind: signature.Agree}.Word()}
	x.Start(b.comm.t, b.id.Epoch, transport.AgreementTag(2*int(b.id.Seq)+phase), a, done)
}

// met ends the barrier. The rank votes, unless it has joined a round.
func (b *ballot) met(err error) {
	confirmed := false
	b.comm.proc.feed(func() {
		if err != nil {
			b.entry.Withdraw()
		}
		if confirmed = b.entry.Confirm(); !confirmed {
			b.entry.End()
		}
	})
	switch {
	case err != nil:
		b.done(nil, err)
	case confirmed:
		b.start(true)
	default:
		b.await()
	}
}

// start casts this rank's vote.
func (b *ballot) start(yes bool) {
	done := func(error) {} // a rank that has said no waits for the verdict
	if yes {
		b.paper[0], done = 1, b.counted
	}
	count := collective.Reduction{Recv: b.paper[:], Op: unanimous, Element: 1}
	b.exchange(0, b.comm.chooser.ByMessages().Allreduce(nil, &count), done)
}

func (b *ballot) counted(err error) {
	agreed := err == nil && b.paper[0] == 1
	if err != nil || agreed { // before this rank joins a round: what comes then is later
		b.done(&errchan.Decision{
			Calls: errchan.Calls(^binary.LittleEndian.Uint16(b.paper[1:])),
			Flag:  int(binary.LittleEndian.Uint64(b.paper[3:])),
		}, err)
	}
	b.comm.proc.feed(func() {
		b.entry.Counted()
		b.entry.End()
	})
	if err == nil && !agreed {
		b.await()
	}
}

// await waits for the error because of which some rank has said no.
func (b *ballot) await() {
	w := &onlyError{name: b.name, done: func(err error) { b.done(nil, err) }}
	b.comm.receiveError(w, b.id.Epoch, transport.AgreementTag(2*int(b.id.Seq)))
}
