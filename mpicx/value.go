package mpicx

import (
	"sync"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// SendValue sends a value of any type that encoding/gob can encode, to be received by
// RecvValue. Of a pointer it sends the value that it points to; a nil pointer is an *MPIError.
// The Count of its Status is the number of encoded bytes. [Send] is faster for slices of types
// without pointers.
func SendValue[T any](c *Comm, v T, dest, tag int) *future.Future[Status] {
	if c == nil {
		return nowhere[Status]("SendValue")
	}
	b, err := element.Encode(v)
	if err != nil {
		return failed[Status](c, mpiError("SendValue", err))
	}
	return c.send("SendValue", element.Buffer{Bytes: b, Type: element.Value}, dest, tag, transport.Shared)
}

// RecvValue receives a value of type T that [SendValue] has sent. From ProcNull it is the zero
// value. For elements that Send has sent, use [Recv] or [RecvSlice].
func RecvValue[T any](c *Comm, source, tag int) *future.Future[T] {
	return recvValue(c, "RecvValue", source, tag, func(v T, _ Status) T { return v })
}

// RecvValueStatus is RecvValue that also returns the message's Status.
func RecvValueStatus[T any](c *Comm, source, tag int) *future.Future[Received[T]] {
	return recvValue(c, "RecvValueStatus", source, tag, func(v T, s Status) Received[T] { return Received[T]{v, s} })
}

func recvValue[T, V any](c *Comm, op string, source, tag int, result func(T, Status) V) *future.Future[V] {
	if c == nil {
		return nowhere[V](op)
	}
	o := new(receipt[V])
	o.request.Take, o.request.Signature = true, element.Value.Signature
	return o.receive(c, op, source, tag, func(r *transport.Request) (V, error) {
		v, err := valueOf[T](op, r)
		return result(v, Status{r.Status.Source, r.Status.Tag, r.Status.Bytes}), err
	})
}

// valueOf returns the value that a receive has received.
func valueOf[T any](op string, r *transport.Request) (T, error) {
	if r.Status.Source == ProcNull {
		return *new(T), nil
	}
	if err := fits(op, r); err != nil {
		return *new(T), err
	}
	v, err := element.Decode[T](r.Buf)
	return v, mpiError(op, err)
}

// BcastValue returns v of rank root at every rank.
func BcastValue[T any](c *Comm, v T, root int) *future.Future[T] {
	const op = "BcastValue"
	if c == nil {
		return nowhere[T](op)
	}
	k := check{op: op}
	k.root(root, c)
	a := &collective.BcastAny{Root: root}
	if c.Rank() == root {
		a.Buf = encoded(&k, v)
	}
	return runValue(c, call{Kind: signature.BcastValue, Root: root}, k.err, a, func() (T, error) {
		if c.Rank() == root {
			return v, nil
		}
		return element.Decode[T](a.Buf)
	})
}

// GatherValue returns v of all ranks, in rank order, at rank root, and nil at the others.
func GatherValue[T any](c *Comm, v T, root int) *future.Future[[]T] {
	const op = "GatherValue"
	if c == nil {
		return nowhere[[]T](op)
	}
	k := check{op: op}
	k.root(root, c)
	a := &collective.GatherAny{Root: root, Send: encoded(&k, v)}
	return runValue(c, call{Kind: signature.GatherValue, Root: root}, k.err, a, func() ([]T, error) { return element.DecodeAll[T](a.Parts) })
}

// ScatterValue returns at each rank its element of vs of rank root, which has one for each
// rank. At other ranks vs is not used.
func ScatterValue[T any](c *Comm, vs []T, root int) *future.Future[T] {
	const op = "ScatterValue"
	if c == nil {
		return nowhere[T](op)
	}
	k := check{op: op}
	k.root(root, c)
	a := &collective.ScatterAny{Root: root}
	if c.rank == root {
		k.length("vs", len(vs), c.size)
		a.Parts = make([][]byte, c.size)
	}
	for r := range a.Parts {
		if k.err == nil {
			a.Parts[r] = encoded(&k, vs[r])
		}
	}
	return runValue(c, call{Kind: signature.ScatterValue, Root: root}, k.err, a, func() (T, error) { return element.Decode[T](a.Part) })
}

// AllgatherValue returns v of all ranks, in rank order, at every rank.
func AllgatherValue[T any](c *Comm, v T) *future.Future[[]T] {
	const op = "AllgatherValue"
	if c == nil {
		return nowhere[[]T](op)
	}
	k, a := check{op: op}, &collective.AllgatherAny{}
	a.Send = encoded(&k, v)
	return runValue(c, call{Kind: signature.AllgatherValue}, k.err, a, func() ([]T, error) { return element.DecodeAll[T](a.Parts) })
}

// encoded returns v encoded, or nil if there is an error.
func encoded[T any](k *check, v T) (b []byte) {
	if k.err == nil {
		var err error
		b, err = element.Encode(v)
		k.err = mpiError(k.op, err)
	}
	return b
}

// runValue is run for an operation whose result value returns.
func runValue[T any](c *Comm, what call, bad error, a collective.Algorithm, value func() (T, error)) *future.Future[T] {
	o := &collectiveValue[T]{comm: c, value: value, exchange: idleExchanges.Get().(*collective.Exchange)}
	o.cell().Keep(c.keeper)
	c.notInReduction("begins", what.Kind.String())
	c.proc.calls.Add(1)
	c.start(o.exchange, what, bad, a, o)
	return o.Future()
}

// idleExchanges are Exchanges for reuse.
var idleExchanges = sync.Pool{New: func() any { return new(collective.Exchange) }}

type collectiveValue[T any] struct {
	future.Promise[T]
	comm     *Comm
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
