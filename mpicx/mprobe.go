package mpicx

import (
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Message is a message that Mprobe has taken (MPI_Message). Receive it once, by Mrecv,
// MrecvSlice or MrecvValue. Until then the sender of a long message, or of an Ssend, waits. An
// error of the communicator discards the message, as it discards all that were not received.
type Message struct {
	Source, Tag int
	Bytes       int // its length

	comm    *Comm
	request *transport.Request // of its Mprobe, which identifies the message to the transport
	taken   atomic.Bool
}

// Mprobe waits for a message as Recv does and takes it: no other receive or probe of this rank
// finds it (MPI_Improbe). With it several goroutines of a rank can look at the length or tag of
// a message before they receive it. [Probe] leaves the message, so another goroutine may
// receive it first.
func (c *Comm) Mprobe(source, tag int) *future.Future[*Message] {
	o := new(typedReceive[*Message])
	o.request.Kind = transport.Mprobing
	return o.receive(c.of(), "Mprobe", source, tag, func(r *transport.Request) (*Message, error) {
		s := r.Status
		return &Message{Source: s.Source, Tag: s.Tag, Bytes: s.Bytes, comm: c, request: r}, nil
	})
}

// Mrecv receives the message into buf (MPI_Imrecv), as Recv does.
func Mrecv[T any](m *Message, buf []T) *future.Future[Status] {
	const op = "Mrecv"
	of := element.TypeOf[T]()
	o := new(typedReceive[Status])
	o.request.Buf = element.Bytes(buf)
	return o.receiveTaken(m, op, of, func(r *transport.Request) (Status, error) { return o.comm.status(op, r, of.Size) })
}

// MrecvSlice receives the message into a new slice, as RecvSlice does.
func MrecvSlice[T any](m *Message) *future.Future[[]T] {
	const op = "MrecvSlice"
	of := element.TypeOf[T]()
	var dest destination[T]
	o := new(typedReceive[[]T])
	o.request.Alloc = dest.alloc
	return o.receiveTaken(m, op, of, func(r *transport.Request) ([]T, error) {
		_, err := o.comm.status(op, r, of.Size)
		return dest.slice, err
	})
}

// MrecvValue receives the value that SendValue sent, as RecvValue does.
func MrecvValue[T any](m *Message) *future.Future[T] {
	const op = "MrecvValue"
	o := new(typedReceive[T])
	o.request.Take = true
	return o.receiveTaken(m, op, element.Value, func(r *transport.Request) (T, error) { return valueOf[T](op, r) })
}

// receiveTaken receives m, which Mprobe has taken, as elements of the given type.
func (o *typedReceive[T]) receiveTaken(m *Message, name string, of *element.Type, result func(*transport.Request) (T, error)) *future.Future[T] {
	if m == nil {
		return future.Failed[T](mpiErrorf(name, ClassOther, "nil message, expected one that Mprobe has taken"))
	}
	c, r := m.comm, &o.request
	o.comm, o.name, o.result = c.of(), name, result
	o.cell().Keep(c.keeper)
	epoch, err := c.begin(name)
	switch {
	case err != nil:
	case of.Unfit != nil:
		err = mpiError(name, of.Unfit)
	case m.taken.Swap(true):
		err = mpiErrorf(name, ClassOther, "the message from rank %d with tag %d has been received already, expected one receive for each message", m.Source, m.Tag)
	case m.request.Peer == ProcNull:
		r.Status = m.request.Status
		o.Completed(r)
		return o.Future()
	case epoch != m.request.Epoch:
		err = mpiErrorf(name, ClassOther, "the message from rank %d with tag %d is lost, expected a receive before the error of %s", m.Source, m.Tag, c.name)
	}
	if err != nil {
		return failed[T](c.of(), err)
	}
	r.Epoch, r.Where, r.Signature, r.Done = epoch, m.request.Where, of.Signature, o
	c.t.Mrecv(r)
	return o.Future()
}
