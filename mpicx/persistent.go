package mpicx

import (
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Persistent operation is one that is started again and again with the same arguments, which
// are checked once (a persistent request in MPI). A Start allocates nothing, but every sixteenth
// makes room for the futures of sixteen. It must not be copied.
type Persistent struct {
	comm    *Comm
	name    string
	bad     error // the error of each Start, if the arguments are bad
	buf     element.Buffer
	peer    int
	tag     int
	mode    transport.Mode
	kind    transport.Kind
	active  atomic.Bool // it is started and has not ended; the Start that sets it owns the fields below
	promise *future.Promise[Status]
	request *transport.Request
	spent   bool // a Cancel may still know the request, so it must not be reused
}

// SendInit prepares a Send of buf to rank dest (MPI_Send_init). Each Start sends what is in buf by
// then.
func SendInit[T any](c *Comm, buf []T, dest, tag int) *Persistent {
	return newPersistent(c, "SendInit", transport.Sending, 0, buf, dest, tag)
}

// SsendInit prepares an Ssend (MPI_Ssend_init).
func SsendInit[T any](c *Comm, buf []T, dest, tag int) *Persistent {
	return newPersistent(c, "SsendInit", transport.Sending, transport.Synchronous, buf, dest, tag)
}

// RecvInit prepares a Recv into buf (MPI_Recv_init).
func RecvInit[T any](c *Comm, buf []T, source, tag int) *Persistent {
	return newPersistent(c, "RecvInit", transport.Receiving, 0, buf, source, tag)
}

func newPersistent[T any](c *Comm, name string, kind transport.Kind, mode transport.Mode, buf []T, peer, tag int) *Persistent {
	p := &Persistent{comm: c, name: name, buf: element.Of(buf), peer: peer, tag: tag, mode: mode, kind: kind, request: new(transport.Request)}
	if c == nil {
		return p
	}
	if p.bad = mpiError(name, p.buf.Unfit); p.bad == nil {
		p.bad = c.checkPoint(name, peer, tag, kind == transport.Receiving)
	}
	return p
}

// Start starts the operation (MPI_Start). To start several, call it in a loop. Each Start returns
// a new future, whose result does not change any more. The operation may be started again when
// that future is done, also if it ended with an error; after a *PropagatedError it runs in the
// next epoch. It is an error to start it earlier, or after Close.
func (p *Persistent) Start() *future.Future[Status] {
	if p == nil {
		return future.Failed[Status](mpiErrorf("Start", ClassOther, "nil operation, expected the result of SendInit, SsendInit or RecvInit"))
	}
	c := p.comm
	if c == nil {
		return nowhere[Status](p.name)
	}
	epoch, err := c.begin(p.name)
	switch {
	case err != nil:
	case p.bad != nil:
		err = p.bad
	case p.active.Swap(true):
		err = mpiErrorf(p.name, ClassOther, "started while it is under way, expected the future of the last Start to be done")
	}
	if err != nil {
		return failed[Status](c.of(), err)
	}
	if f := p.atOnce(epoch); f != nil {
		p.active.Store(false)
		return f
	}
	if p.spent {
		p.request, p.spent = new(transport.Request), false
	}
	p.promise = c.proc.statuses.get()
	f, r := p.promise.Future(), p.request
	waiting.Of(f).Keep(c.keeper)
	r.Buf, r.Signature, r.Peer, r.Tag, r.Mode, r.Epoch, r.Done = p.buf.Bytes, p.buf.Signature, p.peer, p.tag, p.mode, epoch, (*started)(p)
	if p.kind == transport.Sending {
		c.t.Isend(r)
	} else {
		c.t.Irecv(r)
		c.receiving(p.peer)
	}
	return f
}

// atOnce returns the future of an operation that needs no request, or nil.
func (p *Persistent) atOnce(epoch transport.Epoch) *future.Future[Status] {
	switch {
	case p.peer == ProcNull:
		return p.comm.ended(statusOfNobody)
	case p.kind == transport.Sending && p.mode == 0 && p.comm.t.TrySend(p.peer, p.tag, epoch, p.buf.Signature, p.buf.Bytes):
		return p.comm.ended(Status{p.comm.rank, p.tag, len(p.buf.Bytes) / p.buf.Size})
	}
	return nil
}

// A started is the transport.Completer of a Persistent operation's request.
type started Persistent

// Completed ends the operation that Start has begun.
func (o *started) Completed(r *transport.Request) {
	promise := o.promise
	s, err := o.comm.status(o.name, r, o.buf.Size)
	o.active.Store(false) // from here on the fields may belong to another Start
	promise.Complete(s, err)
}

func (o *started) Operation() string   { return o.name }
func (o *started) cell() *waiting.Cell { return waiting.Of(o.promise.Future()) }
func (o *started) cancelling()         { o.spent = true }

// Awaited is that of a receive, or of a send.
func (o *started) Awaited() bool {
	return o.peer != AnySource || o.cell().Awaited()
}

func (o *started) Acknowledged() bool { return o.comm.othersAcknowledged() }
