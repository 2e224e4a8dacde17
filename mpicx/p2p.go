package mpicx

import (
	"cmp"
	"sync"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Send sends buf to rank dest (MPI_Isend). The future is done when buf may be changed again: at
// once for a short message, which is copied, and when a receive has matched it for a long one.
// Once some 65,000 messages wait at dest for their receives, a short one waits for its receive too;
// between processes perhaps earlier, but never while fewer than 30,000 wait.
// A tag is not negative. [Ssend] always waits for the receive.
//
// T is a type without pointers: a Scalar, or an array or struct of such types. Any other type
// is an *MPIError of ClassType, and nothing is sent; [SendValue] sends values of those.
// Elements are sent as they lie in memory. The padding between fields of a struct is sent too:
// its bytes are undefined at both ends, and == does not compare them.
func Send[T any](c *Comm, buf []T, dest, tag int) *future.Future[Status] {
	return c.of().send("Send", element.Of(buf), dest, tag, 0)
}

// Ssend is [Send] that is done only when a receive has matched it (MPI_Issend).
func Ssend[T any](c *Comm, buf []T, dest, tag int) *future.Future[Status] {
	return c.of().send("Ssend", element.Of(buf), dest, tag, transport.Synchronous)
}

// Recv receives a message from rank source, or AnySource, with the tag, or AnyTag, into buf
// (MPI_Irecv). The message may be shorter than buf: see Status.Count. A longer one is an
// *MPIError of ClassTruncate. If the length is not known in advance, use [RecvSlice].
//
// A message of elements of another type is an *MPIError of ClassType, and the contents of buf
// are undefined. Bytes fit every type, like MPI_PACKED: a message that was sent as a []byte may
// be received as elements of T, and any message may be received as a []byte. An int fits an
// int64 where their sizes are equal.
//
// On goroutine ranks, an operation that names a rank whose function has returned ends with an
// *MPIError when all that the rank has sent is received. A Wait for a receive from AnySource
// ends so when all other ranks have returned. With the ULFM backend these ranks are dead for
// the operation.
func Recv[T any](c *Comm, buf []T, source, tag int) *future.Future[Status] {
	return c.of().receive(transport.Receiving, element.Of(buf), source, tag)
}

// Probe completes when a message has arrived that Recv would receive, with its Status
// (MPI_Probe). It leaves the message to the next receive. To look from time to time, as with
// MPI_Iprobe, Test the same future again: each Probe that finds nothing stays pending. If several
// goroutines receive, take [Comm.Mprobe].
func Probe[T any](c *Comm, source, tag int) *future.Future[Status] {
	return c.of().receive(transport.Probing, element.Buffer{Type: element.TypeOf[T]()}, source, tag)
}

// RecvSlice receives a message of any length into a new slice of elements of T, which [Send] or
// Ssend has sent. For a value that [SendValue] has sent, use [RecvValue].
func RecvSlice[T any](c *Comm, source, tag int) *future.Future[[]T] {
	return recvSlice(c.of(), "RecvSlice", source, tag, func(slice []T, _ Status) []T { return slice })
}

// RecvSliceStatus is RecvSlice that also returns the message's Status.
func RecvSliceStatus[T any](c *Comm, source, tag int) *future.Future[Received[[]T]] {
	return recvSlice(c.of(), "RecvSliceStatus", source, tag, func(slice []T, s Status) Received[[]T] { return Received[[]T]{slice, s} })
}

func recvSlice[T, V any](c *comm, op string, source, tag int, result func([]T, Status) V) *future.Future[V] {
	of := element.TypeOf[T]()
	if of.Unfit != nil {
		return failed[V](c, mpiError(op, of.Unfit))
	}
	var dest destination[T]
	o := new(typedReceive[V])
	o.request.Alloc, o.request.Signature = dest.alloc, of.Signature
	return o.receive(c, op, source, tag, func(r *transport.Request) (V, error) {
		s, err := c.status(op, r, of.Size)
		return result(dest.slice, s), err
	})
}

// A destination allocates the slice for a message when its length is known.
type destination[T any] struct{ slice []T }

func (m *destination[T]) alloc(n int) []byte {
	m.slice = make([]T, (n+element.Size[T]()-1)/element.Size[T]())
	return element.Bytes(m.slice)
}

// receive starts a receive or a probe.
func (c *comm) receive(kind transport.Kind, b element.Buffer, source, tag int) *future.Future[Status] {
	if c == nil {
		return nowhere[Status](receiveName(kind))
	}
	if b.Unfit != nil {
		return failed[Status](c, mpiError(receiveName(kind), b.Unfit))
	}
	o := idleReceives.Get().(*receiveOp)
	if o.promise == nil {
		o.promise = c.proc.statuses.get()
	}
	f := o.promise.Future()
	cell := waiting.Of(f)
	cell.Keep(c.keeper)
	o.comm, o.size = c, b.Size
	r := &o.request
	r.Kind, r.Buf, r.Signature, r.Peer, r.Tag, r.Done, r.Light = kind, b.Bytes, b.Signature, source, tag, o, true
	if r.Soon = nil; c.proc.prompt.likely.Load() {
		r.Soon = &c.proc.yielder
	}
	if !c.post(receiveName(kind), r, cell) {
		c.proc.prompt.posted(cell)
		return f
	}
	s, err := c.status(o.Operation(), r, b.Size)
	if err != nil {
		o.Completed(r)
		return f
	}
	r.Buf = nil // the promise is for the next receive
	idleReceives.Put(o)
	return c.ended(s)
}

// post posts a receive or a probe, or ends it if it is refused. If it returns true, the message has
// come, and the caller ends it.
func (c *comm) post(name string, r *transport.Request, cell *waiting.Cell) (received bool) {
	source := r.Peer // the request may be in use again once it has ended
	var err error
	if r.Epoch, err = c.begin(name); err == nil {
		err = c.checkPoint(name, source, r.Tag, true)
	} else {
		cell.Keep(c.keeperAfter(err))
	}
	switch {
	case err != nil:
		orError(err, func(err error) {
			r.Err = err
			r.Done.Completed(r)
		})
		return false
	case source == ProcNull:
		r.Status, r.Err = transport.Status{Source: ProcNull, Tag: AnyTag}, nil
		r.Done.Completed(r)
		return false
	case r.Kind == transport.Receiving:
		received = c.t.TryRecv(r)
	case r.Kind == transport.Mprobing:
		c.t.Mprobe(r)
	default:
		c.t.Probe(r)
	}
	if !received {
		c.receiving(source)
	}
	return received
}

// A typedReceive is a receive, or an Mprobe, whose result is made of the message.
type typedReceive[T any] struct {
	future.Promise[T]
	comm    *comm
	request transport.Request
	name    string
	result  func(*transport.Request) (T, error)
}

func (o *typedReceive[T]) receive(c *comm, name string, source, tag int, result func(*transport.Request) (T, error)) *future.Future[T] {
	if c == nil {
		return nowhere[T](name)
	}
	o.comm, o.name, o.result = c, name, result
	o.cell().Keep(c.keeper)
	r := &o.request
	r.Kind, r.Peer, r.Tag, r.Done = cmp.Or(r.Kind, transport.Receiving), source, tag, o
	if c.post(name, r, o.cell()) {
		o.Completed(r)
	}
	return o.Future()
}

// Completed ends the operation.
func (o *typedReceive[T]) Completed(r *transport.Request) {
	if r.Err != nil {
		o.Complete(*new(T), o.comm.failure(o.name, r.Err))
		return
	}
	v, err := o.result(r)
	r.Buf = nil
	o.Complete(v, err)
}

func (o *typedReceive[T]) Operation() string   { return o.name }
func (o *typedReceive[T]) cell() *waiting.Cell { return waiting.Of(o.Future()) }
func (o *typedReceive[T]) Awaited() bool       { return needsPeer(&o.request) || o.cell().Awaited() }
func (o *typedReceive[T]) Acknowledged() bool  { return o.comm.othersAcknowledged() }
func (o *typedReceive[T]) cancelling()         {}

// idleReceives are receiveOps for reuse.
var idleReceives = sync.Pool{New: func() any { return new(receiveOp) }}

// receiveOp is the state of a receive or probe until it is done. It is then reused.
type receiveOp struct {
	comm    *comm
	promise *future.Promise[Status]
	request transport.Request
	size    int  // of an element
	spent   bool // a Cancel may still know the request, so it must not be reused
}

func (o *receiveOp) cancelling()         { o.spent = true }
func (o *receiveOp) Operation() string   { return receiveName(o.request.Kind) }
func (o *receiveOp) cell() *waiting.Cell { return waiting.Of(o.promise.Future()) }

func receiveName(kind transport.Kind) string {
	if kind == transport.Probing {
		return "Probe"
	}
	return "Recv"
}

func (o *receiveOp) Awaited() bool      { return needsPeer(&o.request) || o.cell().Awaited() }
func (o *receiveOp) Acknowledged() bool { return o.comm.othersAcknowledged() }

// needsPeer says whether only one rank can end the request. If that rank has returned, the
// request ends even if this rank does not wait for it yet. A request from AnySource may be
// ended by this rank itself, until it waits.
func needsPeer(r *transport.Request) bool { return r.Peer != AnySource }

// Completed ends the operation.
func (o *receiveOp) Completed(r *transport.Request) {
	p := o.promise
	s, err := o.comm.status(o.Operation(), r, o.size)
	o.promise, r.Buf, r.Err = nil, nil, nil
	if !o.spent {
		idleReceives.Put(o)
	}
	p.Complete(s, err)
}

// sendOp is a pending send.
type sendOp struct {
	future.Promise[Status]
	comm    *comm
	request transport.Request
	name    string
	size    int
}

func (c *comm) send(name string, b element.Buffer, dest, tag int, mode transport.Mode) *future.Future[Status] {
	if c == nil {
		return nowhere[Status](name)
	}
	if b.Unfit != nil {
		return failed[Status](c, mpiError(name, b.Unfit))
	}
	epoch, err := c.begin(name)
	if err == nil {
		err = c.checkPoint(name, dest, tag, false)
	}
	if err != nil {
		return failed[Status](c, err)
	}
	if dest == ProcNull {
		return c.ended(statusOfNobody)
	}
	if mode == 0 && c.t.TrySend(dest, tag, epoch, b.Signature, b.Bytes) {
		return c.ended(Status{c.rank, tag, len(b.Bytes) / b.Size})
	}
	o := &sendOp{comm: c, name: name, size: b.Size}
	o.cell().Keep(c.keeper)
	o.request = transport.Request{Buf: b.Bytes, Peer: dest, Tag: tag, Mode: mode, Epoch: epoch, Signature: b.Signature, Done: o}
	c.t.Isend(&o.request)
	return o.Future()
}

// Completed ends the operation.
func (o *sendOp) Completed(r *transport.Request) {
	r.Buf = nil
	s, err := o.comm.status(o.name, r, o.size)
	o.Complete(s, err)
}

func (o *sendOp) Operation() string   { return o.name }
func (o *sendOp) cell() *waiting.Cell { return waiting.Of(o.Future()) }
func (o *sendOp) Awaited() bool       { return needsPeer(&o.request) }

// ended returns a future that is done with s. A future that is done never changes, so the last one
// of a send or of a receive is shared if it has the same result.
func (c *comm) ended(s Status) *future.Future[Status] {
	shared := &c.last[truth(s.Source == c.rank)]
	if last := shared.Load(); last != nil && last.status == s {
		return last.Future()
	}
	last := &endedFuture{status: s}
	waiting.Of(last.Future()).Keep(c.keeper)
	last.Complete(s, nil)
	shared.Store(last)
	return last.Future()
}

func (c *comm) status(op string, r *transport.Request, size int) (Status, error) {
	s := Status{r.Status.Source, r.Status.Tag, r.Status.Bytes / size}
	if r.Signature != r.Status.Signature {
		if err := fits(op, r); err != nil {
			return s, err
		}
	}
	if r.Err != nil {
		return s, c.failure(op, r.Err)
	}
	if s.Count*size != r.Status.Bytes {
		return s, mpiErrorf(op, ClassType, "message of %d bytes from rank %d with tag %d, expected a multiple of the %d bytes of an element",
			r.Status.Bytes, s.Source, s.Tag, size)
	}
	return s, nil
}

// fits returns the error of a receive or probe whose message has another signature that does not
// fit.
func fits(op string, r *transport.Request) error {
	if r.Kind == transport.Sending || r.Err != nil && !hasType[*transport.TruncateError](r.Err) {
		return nil
	}
	if s := &r.Status; !r.Signature.Fits(s.Signature) {
		return mpiErrorf(op, ClassType, "message of type %v from rank %d with tag %d, expected type %v", s.Signature, s.Source, s.Tag, r.Signature)
	}
	return nil
}
