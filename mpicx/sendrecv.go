package mpicx

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Sendrecv sends send to rank dest and receives a message from rank source into recv
// (MPI_Isendrecv). It is done when both are, with the Status of the receive. Ranks can therefore
// pass messages round a ring without deadlock. At the border of a grid, dest or source is ProcNull.
// Send and recv may be the same slice, or overlap: the old contents are sent
// (MPI_Isendrecv_replace).
//
// If one half needs a rank that has died or returned, the other half is cancelled, unless a
// message has matched it.
func Sendrecv[S, R any](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) *future.Future[Status] {
	const op = "Sendrecv"
	if c == nil {
		return nowhere[Status](op)
	}
	out, in := element.Of(send), element.Of(recv)
	if bad := cmp.Or(out.Unfit, in.Unfit); bad != nil {
		return failed[Status](c.of(), mpiError(op, bad))
	}
	o := &sendrecv{comm: c.of(), size: in.Size}
	o.send = transport.Request{Buf: out.Bytes, Signature: out.Signature, Peer: dest, Tag: sendTag, Done: o}
	o.recv = transport.Request{Buf: in.Bytes, Signature: in.Signature, Peer: source, Tag: recvTag, Done: recvHalf{o}, Private: transport.Private{Kind: transport.Receiving}}
	if element.Overlap(o.send.Buf, o.recv.Buf) {
		o.send.Buf, o.send.Mode = slices.Clone(o.send.Buf), transport.Shared
	}
	return o.start()
}

// sendrecv is a Sendrecv under way. Its two halves may end on different goroutines.
type sendrecv struct {
	future.Promise[Status]
	comm       *comm
	send, recv transport.Request
	size       int // of an element of recv
	status     Status
	pending    atomic.Int32          // number of halves that have not ended
	err        atomic.Pointer[error] // the error of the half that failed first
	started    atomic.Bool           // both halves are started
	doomed     atomic.Bool           // one half has failed because of a loss, so the other is cancelled
}

func (o *sendrecv) start() *future.Future[Status] {
	c := o.comm
	o.cell().Keep(c.keeper)
	epoch, err := c.begin("Sendrecv")
	if err == nil {
		err = cmp.Or(c.checkPoint("Sendrecv", o.send.Peer, o.send.Tag, false), c.checkPoint("Sendrecv", o.recv.Peer, o.recv.Tag, true))
	}
	if err != nil {
		return failed[Status](c, err)
	}
	o.send.Epoch, o.recv.Epoch = epoch, epoch
	o.pending.Store(2)
	if source := o.recv.Peer; source == ProcNull {
		o.recv.Status = transport.Status{Source: ProcNull, Tag: AnyTag}
		o.Completed(&o.recv)
	} else {
		if c.t.TryRecv(&o.recv) {
			o.Completed(&o.recv)
		}
		c.receiving(source)
	}
	if o.send.Peer == ProcNull || o.send.Mode == 0 && c.t.TrySend(o.send.Peer, o.send.Tag, epoch, o.send.Signature, o.send.Buf) {
		o.ended(nil)
	} else {
		c.t.Isend(&o.send)
	}
	o.started.Store(true)
	o.cancelIfDoomed()
	return o.Future()
}

// cancelIfDoomed may be called more than once: a half that has ended is not changed.
func (o *sendrecv) cancelIfDoomed() {
	if o.doomed.Load() && o.started.Load() {
		o.comm.t.Cancel(&o.send)
		o.comm.t.Cancel(&o.recv)
	}
}

// ended notes the end of a half.
func (o *sendrecv) ended(err error) {
	if err != nil {
		o.err.CompareAndSwap(nil, &err)
	}
	if o.pending.Add(-1) == 0 {
		if first := o.err.Load(); first != nil {
			err = *first
		}
		o.Complete(o.status, err)
	}
}

// Completed ends a half. If it has failed because a rank has died or returned, the other half is
// cancelled.
func (o *sendrecv) Completed(r *transport.Request) {
	cause := r.Err
	if r == &o.send {
		o.ended(o.comm.failure("Sendrecv", cause))
	} else {
		var err error
		o.status, err = o.comm.status("Sendrecv", r, o.size)
		o.ended(err)
	}
	switch cause.(type) {
	case *transport.DeadError, *transport.LeftError:
		o.doomed.Store(true)
		o.cancelIfDoomed()
	}
}

func (o *sendrecv) Operation() string   { return "Sendrecv" }
func (o *sendrecv) cell() *waiting.Cell { return waiting.Of(o.Future()) }
func (o *sendrecv) Awaited() bool       { return needsPeer(&o.send) }

// A recvHalf is the Sendrecv for its receive, which may be from AnySource.
type recvHalf struct{ *sendrecv }

func (h recvHalf) Awaited() bool      { return needsPeer(&h.recv) || h.cell().Awaited() }
func (h recvHalf) Acknowledged() bool { return h.comm.othersAcknowledged() }
