package mpicx

import (
	"sync"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Collective operations: every rank of the communicator calls the same ones, in
// the same order and with arguments that fit. Buffers belong to the library
// until the future is done. A rank whose call does not fit that of a peer gets an *MPIError
// that has both in words, at once or from what it waits for next, and so does everything that it
// begins on the communicator until the next error that all ranks get.

// run starts algorithm a of a call, unless bad says that its arguments are. Other ranks may be
// in it then: what becomes of it there is the program's to tell them, by an error. Finish, if not
// nil, is what is left to do once all messages have come.
func (c *Comm) run(what call, bad error, a collective.Algorithm, finish func()) *future.Future[struct{}] {
	return c.newRun().start(what, bad, a, finish)
}

// newRun returns a run for the caller to start.
func (c *Comm) newRun() *collectiveRun {
	r := c.proc.idleRun.Swap(nil)
	if r == nil {
		r = idleRuns.Get().(*collectiveRun)
	}
	r.comm = c
	if r.promise == nil {
		r.promise = c.proc.untyped.get()
	}
	return r
}

func (r *collectiveRun) start(what call, bad error, a collective.Algorithm, finish func()) *future.Future[struct{}] {
	c, f := r.comm, r.promise.Future()
	r.finish = finish
	r.cell().Keep(c.keeper)
	ended, err := c.begun(&r.exchange, what, bad, a, r)
	if ended && err == nil { // nobody has seen the promise
		r.succeeded()
		return c.succeeded.Future()
	}
	if ended {
		r.Ended(err)
	}
	return f
}

// start starts a collective operation, or ends it if it can't be.
func (c *Comm) start(x *collective.Exchange, what call, bad error, a collective.Algorithm, done ending) {
	if ended, err := c.begun(x, what, bad, a, done); ended {
		done.Ended(err)
	}
}

// begun is start that says whether the operation has ended meanwhile, and how. Done is not told
// then.
func (c *Comm) begun(x *collective.Exchange, what call, bad error, a collective.Algorithm, done ending) (ended bool, err error) {
	x.Name = what.Kind.String()
	c.notInReduction("begins", x.Name)
	epoch, err := c.begin(x.Name)
	if err != nil {
		done.cell().Keep(c.keeperAfter(err))
		return true, err
	}
	x.Signature = 0 // a bad call counts too, and fits every other
	if bad == nil {
		x.Signature = what.Word()
	}
	seq := c.sequence(epoch, x.Signature)
	if bad != nil {
		return true, bad
	}
	return x.Begin(c.t, epoch, transport.CollectiveTag(seq), a, done)
}

// ending is what a collective operation ends: its future, through Ended.
type ending interface {
	collective.Ender
	operation
}

// idleRuns are those that have served, but for one of each rank.
var idleRuns = sync.Pool{New: func() any { return new(collectiveRun) }}

// collectiveRun is what a collective operation needs only until it is done. Then
// it serves again.
type collectiveRun struct {
	comm     *Comm
	exchange collective.Exchange
	kept     collective.Kept
	promise  *future.Promise[struct{}] // of an idle run: not seen by anybody, or nil
	finish   func()
}

func (r *collectiveRun) cell() *waiting.Cell { return waiting.Of(r.promise.Future()) }

// Ended ends the operation.
func (r *collectiveRun) Ended(err error) {
	c, p, name := r.comm, r.promise, r.exchange.Name // not r's own once it serves again
	r.promise = nil
	if err == nil {
		r.succeeded()
	} else {
		r.idle()
	}
	p.Complete(struct{}{}, c.failure(name, err))
}

func (r *collectiveRun) succeeded() {
	if r.finish != nil {
		r.finish()
	}
	r.idle()
}

func (r *collectiveRun) idle() {
	r.finish = nil
	r.kept.Forget()
	if !r.comm.proc.idleRun.CompareAndSwap(nil, r) {
		idleRuns.Put(r)
	}
}

// ender is a function as a collective.Ender.
type ender func(error)

func (f ender) Ended(err error) { f(err) }
