package mpicx

import (
	"sync"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Collective operations: every rank of the communicator calls the same ones, in the same order and
// with matching arguments. Buffers belong to the library until the future is done. A rank whose
// call differs from a peer's gets an *MPIError that describes both calls, from this operation or
// the next one that it waits for. Then all its operations on the communicator end with that error,
// until the next error that all ranks get (M2, M3). Bad arguments are an error at their rank, at
// once, and at the ranks with which it shares the call's place.

// call describes a collective call. Its messages carry the description.
type call = signature.Call

// collectively starts the collective operation that what describes, on elements of type T. prepare
// checks its other arguments by the check in the run, and returns the algorithm.
func collectively[T any](c *comm, what call, prepare func(*collectiveRun) collective.Algorithm) *future.Future[struct{}] {
	what, unfit := ofElements[T](what)
	return c.start(what, unfit, prepare)
}

// ofElements returns a call on elements of type T, and why T can't be sent, or nil.
func ofElements[T any](what call) (_ call, unfit error) {
	of := element.TypeOf[T]()
	what.Of, what.Count = of.Element, counted[T](what.Count)
	return what, of.Unfit
}

// counted returns the Count of a call on n elements of type T. A peer's structs may have another
// size, so structs are counted in bytes.
func counted[T any](n int) int {
	if element.TypeOf[T]().Element == signature.Struct {
		n *= element.Size[T]()
	}
	return n
}

// start starts the collective operation that what describes. It is refused if unfit is not nil,
// because of the type of the elements, or if prepare finds bad arguments. prepare may complete
// what, and returns the algorithm.
func (c *comm) start(what call, unfit error, prepare func(*collectiveRun) collective.Algorithm) *future.Future[struct{}] {
	if c == nil {
		return nowhere[struct{}](what.Kind.String())
	}
	op := what.Kind.String()
	c.notInReduction("begins", op)
	r := c.newRun()
	r.what, r.check = what, check{op: op, err: mpiError(op, unfit)}
	a := prepare(r)
	f := r.promise.Future()
	// Goroutine ranks yield when they wait, and not before: the others need what they show first.
	prompt := &c.proc.prompt
	r.exchange.Soon = c.proc.driver != nil && prompt.likely.Load()
	ended, err := c.begun(&r.exchange, r.what.Word(), r.err, a, r)
	if ended && err == nil { // the promise stays unused
		r.succeeded()
		return c.succeeded.Future()
	}
	if ended {
		orError(err, r.Ended)
		return f
	}
	if c.proc.driver != nil {
		prompt.posted(waiting.Of(f))
	}
	return f
}

// run is start of algorithm a. If bad is not nil, the arguments are bad, and nothing starts.
func (c *comm) run(what call, bad error, a collective.Algorithm) *future.Future[struct{}] {
	return c.start(what, bad, func(*collectiveRun) collective.Algorithm { return a })
}

// newRun returns a run for the caller to start.
func (c *comm) newRun() *collectiveRun {
	r := c.proc.freeRun()
	r.comm = c
	if r.promise == nil {
		r.promise = c.proc.untyped.get()
	}
	r.cell().Keep(c.keeper)
	return r
}

// startExchange starts a collective operation, or ends it if it can't be.
func (c *comm) startExchange(x *collective.Exchange, what call, bad error, a collective.Algorithm, done ending) {
	if ended, err := c.begun(x, what.Word(), bad, a, done); ended {
		orError(err, done.Ended)
	}
}

// begun is startExchange for a caller that handles an operation which ends at once: it then returns
// the error, and does not call done.
func (c *comm) begun(x *collective.Exchange, what signature.Word, bad error, a collective.Algorithm, done ending) (ended bool, err error) {
	x.Name = what.Kind().String()
	epoch, err := c.begin(x.Name)
	if err != nil {
		done.cell().Keep(c.keeperAfter(err))
		return true, err
	}
	if bad != nil { // it counts too, and matches every other call
		c.t.Call(epoch, call{Kind: signature.Refused, Root: c.rank}.Word())
		return true, bad
	}
	x.Signature = what
	return x.Call(c.t, epoch, a, done)
}

// An ending is told that a collective operation has ended, and completes its future.
type ending interface {
	collective.Ender
	operation
}

// freeRun returns a run that no operation uses. It is the rank's own if no call is pending.
func (p *proc) freeRun() *collectiveRun {
	if p.calls.Add(1) > 1 {
		return idleRuns.Get().(*collectiveRun)
	}
	r := p.ownRun.Load()
	if r == nil {
		r = new(collectiveRun)
		p.ownRun.Store(r)
	}
	return r
}

// idleRuns has the unused runs, except for the one that each rank keeps.
var idleRuns = sync.Pool{New: func() any { return new(collectiveRun) }}

// A collectiveRun is the state of a collective operation that is not done. Afterwards it is reused.
type collectiveRun struct {
	comm     *comm
	exchange collective.Exchange
	kept     collective.Kept
	promise  *future.Promise[struct{}] // of an idle run: nil, or unused

	// These are for the function that prepares it.

	check
	what   call
	finish func() // called when all messages have been received; nil: nothing is left to be done
}

func (r *collectiveRun) cell() *waiting.Cell { return waiting.Of(r.promise.Future()) }

// Ended ends the operation.
func (r *collectiveRun) Ended(err error) {
	c, p, name := r.comm, r.promise, r.exchange.Name // r may be reused before Complete
	r.promise = nil
	if err == nil {
		r.succeeded()
	} else {
		err = c.callFailure(name, err, waiting.Of(p.Future()))
		r.idle()
	}
	p.Complete(struct{}{}, err)
}

func (r *collectiveRun) succeeded() {
	if r.finish != nil {
		r.finish()
	}
	r.idle()
}

func (r *collectiveRun) idle() {
	p := r.comm.proc
	r.finish = nil
	r.kept.Forget()
	if r != p.ownRun.Load() {
		idleRuns.Put(r)
	}
	p.callEnded()
}

// ender is a function as a collective.Ender.
type ender func(error)

func (f ender) Ended(err error) { f(err) }

// encoded returns v encoded, or nil if there is an error.
func encoded[T any](k *check, v T) (b []byte) {
	if k.err == nil {
		var err error
		b, err = element.Encode(v)
		k.err = mpiError(k.op, err)
	}
	return b
}

// runValue starts algorithm a for an operation whose result value returns. If bad is not nil, the
// arguments are bad, and nothing starts.
func runValue[T any](c *comm, what call, bad error, a collective.Algorithm, value func() (T, error)) *future.Future[T] {
	if c == nil {
		return nowhere[T](what.Kind.String())
	}
	o := &collectiveValue[T]{comm: c, value: value, exchange: idleExchanges.Get().(*collective.Exchange)}
	o.cell().Keep(c.keeper)
	c.notInReduction("begins", what.Kind.String())
	c.proc.calls.Add(1)
	c.startExchange(o.exchange, what, bad, a, o)
	return o.Future()
}

// idleExchanges are Exchanges for reuse.
var idleExchanges = sync.Pool{New: func() any { return new(collective.Exchange) }}

type collectiveValue[T any] struct {
	future.Promise[T]
	comm     *comm
	exchange *collective.Exchange // until the operation has ended
	value    func() (T, error)
}

func (o *collectiveValue[T]) cell() *waiting.Cell { return waiting.Of(o.Future()) }

// Ended ends the operation.
func (o *collectiveValue[T]) Ended(err error) {
	name := o.exchange.Name
	idleExchanges.Put(o.exchange)
	o.exchange = nil
	var v T
	if err == nil {
		func() {
			defer future.Catch(&err)
			v, err = o.value()
		}()
	}
	o.Complete(v, o.comm.callFailure(name, err, o.cell()))
	o.comm.proc.callEnded()
}
