package mpicx

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Close ends the use of the communicator (MPI_Comm_free). It is collective and waits for all ranks,
// so that an error which a peer has signalled before its Close still arrives here. Close then
// returns that error, and the communicator stays open. Inside a Try that returns the error, and in
// which the communicator was made, Close ends it and returns nil. If the communicator is corrupted
// or revoked, or has dead ranks, Close waits for nobody and returns nil. The world ends with [Run]
// or [Instance.Finalize].
//
// Pending operations continue, as in MPI. A receive whose message nobody sent before Close does not
// end: [Cancel] it before. If Close is deferred itself, and called by a panic, it does what
// [Comm.Release] does. If it needs a rank that has called Release, it does the same, and waits for
// nobody.
func (c *Comm) Close(ctx context.Context) error {
	if v := recover(); v != nil {
		c.of().giveUpIn(v)
		panic(v)
	}
	if err := c.ready("Close", ctx); err != nil {
		return err
	}
	c.notInReduction("begins", "Close")
	if c.isClosed() {
		return mpiErrorf("Close", ClassComm, "%s is closed already", c.name)
	}
	var err error
	if !c.isBroken() {
		// Errors that this rank has raised are told first. Otherwise a peer could meet this
		// rank in the barrier and close c before the error arrives there.
		if err = c.verdictFor(ctx, ledger.TakeToClose, nil); err == nil {
			err = c.meetToClose().Wait(ctx)
		}
		if _, ok := err.(*transport.LeftError); ok {
			c.giveUpIn(nil)
			return nil
		}
		if c.isOfScope(err) {
			c.close()
			return nil
		}
		if err != nil && !meansDeath(err) && !c.isBroken() || hasType[*PropagatedError](err) {
			return err
		}
		if v, ok := err.(interface{ isOf(*comm) bool }); ok && !v.isOf(c.comm) { // told now, so not again
			return err
		}
		if err != nil && c.parent != nil { // this rank may have joined a round of the parent (P2)
			if v := c.parent.verdict(ctx); v != nil {
				return v
			}
		}
	}
	if err == nil {
		c.leaveMessages()
	}
	c.close()
	return nil
}

// Release gives up this rank's Comm, and never waits: MPI_Comm_free as in paper 000, section 3.3.
// It is right in a defer, next to the call that makes the communicator:
//
//	defer dup.Release()
//
// When all ranks have called Release or Close, or have dropped their Comms, the communicator is
// freed in the background. Until then this rank still takes part in its errors. Pending operations
// of this rank continue, as after Close. An operation of another rank that needs this one ends,
// once this rank waits for something else, or a Try, TryAll or Guard or its program has ended: at
// all ranks with an error of that scope or, if there is none, with a *CommCorruptedError which says
// that this rank has released the communicator. Under [ErrorsReturn] it ends with an *MPIError, and
// no other rank is told.
//
// In a panic Release corrupts the communicator first, as the destructor of paper 004 does, and the
// panic continues. For that it has to be deferred itself: func() { dup.Release() } sees no panic.
// An error that is thrown to a Try is no panic, and runtime.Goexit looks like a return.
//
// On a nil Comm, and on one that is closed, Release does nothing. The world ends with [Run].
func (c *Comm) Release() {
	v := recover()
	c.of().giveUpIn(v)
	if v != nil {
		panic(v)
	}
}

// giveUpIn is Release. If v is not nil, it is called by a panic with v, or by an error that was
// thrown.
func (c *comm) giveUpIn(v any) {
	if c == nil || c.proc.dead.Load() || c.proc.stage.Load() >= stageEnded {
		return
	}
	cause := panicked(v)
	if cause != nil {
		c.raise(newFailure(cause, 2), &ledger.Raised{Cause: traced(cause), Corrupt: true})
	}
	if c.parent == nil || c.isClosed() {
		return
	}
	c.leaveMessages()
	if c.close(); cause == nil { // else all are told of the corruption
		c.proc.part(parting{c.part, &c.ledger})
	}
}

// part tells the peers that need this rank on c that it has given c up by itself.
func (c *comm) part() {
	c.t.Release()
	if c.ulfm != nil {
		c.ulfm.Part()
	}
}

// handle returns a Comm for the program, or nil for nil. If the program drops it, it is released.
func (c *comm) handle() *Comm {
	if c == nil {
		return nil
	}
	h := &Comm{c}
	if c.parent != nil && !inBubble() {
		runtime.AddCleanup(h, dropped, c)
	}
	return h
}

// dropped is called when the program has no reference to the Comm of c any more. It is called again
// after the next collection of garbage if an operation on c is pending.
func dropped(c *comm) {
	switch {
	case c.isClosed():
	case c.calls.Load() > 0 || c.isPending():
		runtime.AddCleanup(new(garbage), dropped, c)
	default:
		c.proc.observer.Happened(observe.Event{Kind: observe.Drop, Comm: c.name})
		c.giveUpIn(nil)
		c.part() // and not what a scope has released that still runs
	}
}

// garbage is what nobody refers to.
type garbage struct{ _ *garbage }

// isOfScope says whether err is the error of a running Try inside which c was made. That Try
// returns err at all ranks, so none of them uses c any more.
func (c *comm) isOfScope(err error) bool {
	p, ok := err.(*PropagatedError)
	if !ok || p.of == nil {
		return false
	}
	return locked(&c.proc.mu, func() bool { return c.ledger.MadeInside(p.of) })
}

// meetToClose begins a barrier whose Waits do not report a corruption of c, because Close does not
// report it.
func (c *comm) meetToClose() *future.Future[struct{}] {
	r := c.newRun()
	f := r.promise.Future()
	r.cell().Keep(&keeper{comm: c, call: "Close", mode: ledger.TakeToClose})
	r.exchange.Name = "Close"
	if epoch, err := c.begin("Close"); err != nil {
		orError(err, r.Ended)
	} else {
		r.exchange.Signature = call{Kind: signature.Close}.Word()
		if ended, err := r.exchange.Call(c.t, epoch, c.chooser.Barrier(&r.kept), r); ended {
			orError(err, r.Ended)
		}
	}
	return f
}

// close closes c at this rank.
func (c *comm) close() { c.proc.feed(c.ledger.Close) }

// discard closes c, which was made but never given to the program. No other rank is waited for.
func (c *comm) discard() {
	c.released.Store(true)
	c.close()
}

// The error channel and the transport of a communicator are released when all ranks have closed it
// and no error is under way, because no error can follow then (H6). The error channel finds this
// out. Until then the communicator stays in its family, because errors of ancestors may concern it,
// and their verdicts may have to tell another rank the decision of an agreement (H5).

// free frees the error channel and the transport of c.
func (c *comm) free() { _, _ = c.channel.Close(), c.t.Close() }

// forget forgets c, which this rank has closed, as soon as no operation on it is pending. carryOut
// calls it.
func (c *comm) forget() {
	c.proc.forgetting = append(c.proc.forgetting, c.forgetIfIdle)
	c.proc.forget()
}

// forgetIfIdle returns false if the program may wait for an operation on c. Otherwise it forgets c
// if all ranks have closed it, or else says that this one has. If c has an error by then, c stays,
// and the ledger has forget called again later.
func (c *comm) forgetIfIdle() (idle bool) {
	switch {
	case c.isPending():
		return false
	case !c.released.Load():
		c.channel.Release()
	default:
		gone := false
		if c.proc.feed(func() { gone = c.ledger.Forgotten() }); gone {
			c.free()
		}
	}
	return true
}

// isPending says whether the program may wait for an operation on c.
func (c *comm) isPending() (is bool) {
	c.t.EachPending(func(r *transport.Request) { is = is || programsOf(r) != nil })
	return is
}

// leftovers describes the failed futures and the messages that the program of this rank has left
// behind. c is its first communicator. The programs of all ranks of this process have returned.
func (c *comm) leftovers() []string {
	if c.proc.dead.Load() && c.proc.stage.Load() < stageEnded {
		return nil
	}
	for _, d := range c.family() {
		if !d.isClosed() {
			d.leaveMessages()
		}
	}
	return c.proc.leaks.All()
}

// leaveMessages records the messages on c, from living ranks, that no receive has matched. It is
// called when the program closes c or returns, because pending sends end then. It is called again
// when all programs have returned, for messages that have arrived since.
func (c *comm) leaveMessages() {
	if !c.proc.keeps || c.proc.hasErrors(&c.ledger) {
		return
	}
	var all []string
	c.t.EachUnreceived(func(s transport.Status) {
		what := fmt.Sprintf("%d bytes", s.Bytes)
		if of := s.Signature.Element(); of != signature.Bytes && of.Size() > 0 {
			what = fmt.Sprintf("%d × %v", s.Bytes/of.Size(), of)
		}
		all = append(all, observe.Operation{Name: "the message of " + what, Kind: transport.Receiving, Peer: s.Source, Tag: s.Tag, Comm: c.name}.String())
	})
	slices.Sort(all)
	c.proc.leaks.Unreceived(&c.ledger, all)
}

// Revoke ends all operations on c at every rank, now and later, but not those that repair it:
// Shrink, Replace, Agree, AgreeFailed, Failed, AckFailed and Close (MPI_Comm_revoke). They end
// with ErrRevoked or, under ErrorsPropagate, with a *CommCorruptedError. Revoke is permanent.
// It is not collective, waits for nobody, and may be called more than once.
//
// Revoke needs -tags ulfm: with the black channel it returns errors.ErrUnsupported.
//
// Call Revoke under ErrorsReturn after a death that only some ranks have noticed, so that the
// others come to the repair. To report an error after which the communicator still works, call
// [Comm.Signal].
func (c *Comm) Revoke(context.Context) error {
	if err := c.ready("Revoke", context.Background()); err != nil {
		return err
	}
	if c.ulfm == nil {
		return unsupported("Revoke", c.untold())
	}
	if c.propagates() {
		err := fmt.Errorf("revoked by rank %d", c.rank)
		c.raise(newFailure(err, 1), &ledger.Raised{Cause: err, Corrupt: true})
		return nil
	}
	c.revoke()
	return nil
}

func (c *comm) revoke() {
	c.revoked(c.rank)
	c.ulfm.Revoke()
}

// revoked notes that the rank by has revoked c, and ends pending operations with ErrRevoked.
func (c *comm) revoked(by int) {
	first := false
	c.proc.feed(func() { first = c.ledger.Revoked(by) })
	if first {
		c.t.Revoke(ErrRevoked)
		c.ulfm.Abandon(ErrRevoked)
		c.t.Quiesce(func() { c.proc.feed(c.ledger.RevokeDone) })
	}
}

// Revoked says whether this rank knows that c has been revoked (MPI_Comm_is_revoked) or
// corrupted.
func (c *Comm) Revoked() bool {
	c.mustExist("Revoked")
	return locked(&c.proc.mu, func() bool { return c.ledger.IsRevoked() || c.ulfm != nil && c.ledger.IsCorrupted() })
}
