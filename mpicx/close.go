package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Close ends the use of the communicator (MPI_Comm_free). It is collective and waits for all
// ranks, so that an error which a peer has signalled before its Close still arrives here. Close
// then returns that error, and the communicator stays open. Inside a Try that returns the error, and in
// which the communicator was made, Close ends it and returns nil. If the communicator is corrupted or
// revoked, or has dead ranks, Close waits for nobody and returns nil. The world ends with [Run]
// or [Instance.Finalize].
//
// Pending operations continue, as in MPI. A receive whose message nobody sent before Close does
// not end: [Cancel] it before.
func (c *Comm) Close(ctx context.Context) error {
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
		if err = c.verdictFor(ctx, ledger.TakeToClose); err == nil {
			err = c.meetToClose().Wait(ctx)
		}
		if c.isOfScope(err) {
			c.close()
			return nil
		}
		if err != nil && !isDeath(err) && !c.isBroken() || is[*PropagatedError](err) {
			return err
		}
		if v, ok := err.(interface{ Of(*Comm) bool }); ok && !v.Of(c) { // told now, so not again
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
	if quiet := c.close(); quiet && err == nil && c.ulfm == nil {
		c.meetToRelease()
	}
	return nil
}

// isOfScope says whether err is the error of a running Try inside which c was made. That Try returns it at
// all ranks, and none of them uses c any more.
func (c *Comm) isOfScope(err error) bool {
	p, ok := err.(*PropagatedError)
	if !ok || p.of == nil {
		return false
	}
	return locked(c.proc, func() bool { return c.ledger.MadeInside(p.of) })
}

// meetToClose is a Barrier that does not tell the program of a corruption of c, because Close does
// not report it.
func (c *Comm) meetToClose() *future.Future[struct{}] {
	r := c.newRun()
	f := r.promise.Future()
	r.cell().Keep(&keeper{Comm: c, call: "Close", mode: ledger.TakeToClose})
	r.exchange.Name = "Close"
	if epoch, err := c.begin("Close"); err != nil {
		r.Ended(err)
	} else {
		r.exchange.Signature = call{Kind: signature.Close}.Word()
		r.exchange.Start(c.t, epoch, transport.CollectiveTag(c.t.Call(epoch, r.exchange.Signature)), c.chooser.Barrier(&r.kept), r)
	}
	return f
}

// close ends the use of c at this rank. quiet says that this rank knows of no error under way.
func (c *Comm) close() (quiet bool) {
	c.proc.feed(func() { quiet = c.ledger.Close() })
	return quiet
}

// discard closes c, which no program has used.
func (c *Comm) discard() {
	c.released.Store(true)
	c.releasing.Store(true)
	c.close()
}

// meetToRelease releases c, with the black channel, when all ranks have begun a second barrier, for
// which no program waits, nor Run: an error may keep a rank from it. With the ULFM backend the barrier
// would need ranks whose programs have ended, and they would count as dead. So the error channel
// releases c there.
func (c *Comm) meetToRelease() {
	x := &collective.Exchange{Name: "Close", Signature: call{Kind: signature.Release}.Word()}
	epoch := c.t.Epoch()
	x.Start(c.t, epoch, transport.CollectiveTag(c.t.Call(epoch, x.Signature)), c.chooser.Barrier(nil), ender(func(err error) {
		if err == nil {
			c.releaseWhenForgotten()
		}
	}))
}
