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

func (c *Comm) newRun() *collectiveRun {
	r := idleRuns.Get().(*collectiveRun)
	r.comm = c
	return r
}

func (r *collectiveRun) start(what call, bad error, a collective.Algorithm, finish func()) *future.Future[struct{}] {
	c, p := r.comm, r.comm.proc.untyped.get()
	r.promise, r.finish = p, finish
	r.cell().Keep(c.keeper)
	c.start(&r.exchange, what, bad, a, r)
	return p.Future()
}

// start starts a collective operation, or ends it if it can't be.
func (c *Comm) start(x *collective.Exchange, what call, bad error, a collective.Algorithm, done ending) {
	x.Name = what.Kind.String()
	c.notInReduction("begins", x.Name)
	epoch, err := c.begin(x.Name)
	if err == nil {
		x.Signature = 0 // a bad call counts too, and fits every other
		if bad == nil {
			x.Signature = what.Word()
		}
		seq := c.sequence(epoch, x.Signature)
		if err = bad; err == nil {
			x.Start(c.t, epoch, transport.CollectiveTag(seq), a, done)
			return
		}
	} else {
		done.cell().Keep(c.keeperAfter(err))
	}
	done.Ended(err)
}

// ending is what a collective operation ends: its future, through Ended.
type ending interface {
	collective.Ender
	operation
}

// idleRuns are those that have served.
var idleRuns = sync.Pool{New: func() any { return new(collectiveRun) }}

// collectiveRun is what a collective operation needs only until it is done. Then
// it serves again.
type collectiveRun struct {
	comm     *Comm
	exchange collective.Exchange
	promise  *future.Promise[struct{}]
	finish   func()

	// The most frequent of operations, a reduction of few elements, needs no more.
	doubling collective.AllreduceDoubling
}

func (r *collectiveRun) cell() *waiting.Cell { return waiting.Of(r.promise.Future()) }

// Ended ends the operation.
func (r *collectiveRun) Ended(err error) {
	c, p, name := r.comm, r.promise, r.exchange.Name // not r's own once it serves again
	if err == nil && r.finish != nil {
		r.finish()
	}
	r.promise, r.finish = nil, nil
	idleRuns.Put(r)
	p.Complete(struct{}{}, c.failure(name, err))
}

// ender is a function as a collective.Ender.
type ender func(error)

func (f ender) Ended(err error) { f(err) }
