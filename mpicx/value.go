package mpicx

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// SendValue sends a value of any type that encoding/gob can encode, to be received by
// RecvValue. Of a pointer it sends the value that it points to; a nil pointer is an *MPIError.
// The Count of its Status is the number of encoded bytes. [Send] is faster for slices of types
// without pointers.
func SendValue[T any](c *Comm, v T, dest, tag int) *future.Future[Status] {
	b, err := element.Encode(v)
	if err != nil {
		return failed[Status](c.of(), mpiError("SendValue", err))
	}
	return c.of().send("SendValue", element.Buffer{Bytes: b, Type: element.Value}, dest, tag, transport.Shared)
}

// RecvValue receives a value of type T that [SendValue] has sent. From ProcNull it is the zero
// value. For elements that Send has sent, use [Recv] or [RecvSlice].
func RecvValue[T any](c *Comm, source, tag int) *future.Future[T] {
	return recvValue(c.of(), "RecvValue", source, tag, func(v T, _ Status) T { return v })
}

// RecvValueStatus is RecvValue that also returns the message's Status.
func RecvValueStatus[T any](c *Comm, source, tag int) *future.Future[Received[T]] {
	return recvValue(c.of(), "RecvValueStatus", source, tag, func(v T, s Status) Received[T] { return Received[T]{v, s} })
}

func recvValue[T, V any](c *comm, op string, source, tag int, result func(T, Status) V) *future.Future[V] {
	o := new(typedReceive[V])
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
	k := check{op: "BcastValue"}
	k.root(root, c.of())
	a := &collective.BcastAny{Root: root}
	if c.of().isRank(root) {
		a.Buf = encoded(&k, v)
	}
	return runValue(c.of(), call{Kind: signature.BcastValue, Root: root}, k.err, a, func() (T, error) {
		if c.of().isRank(root) {
			return v, nil
		}
		return element.Decode[T](a.Buf)
	})
}

// GatherValue returns v of all ranks, in rank order, at rank root, and nil at the others.
func GatherValue[T any](c *Comm, v T, root int) *future.Future[[]T] {
	k := check{op: "GatherValue"}
	k.root(root, c.of())
	a := &collective.GatherAny{Root: root, Send: encoded(&k, v)}
	return runValue(c.of(), call{Kind: signature.GatherValue, Root: root}, k.err, a, func() ([]T, error) { return element.DecodeAll[T](a.Parts) })
}

// ScatterValue returns at each rank its element of vs of rank root, which has one for each
// rank. At other ranks vs is not used.
func ScatterValue[T any](c *Comm, vs []T, root int) *future.Future[T] {
	k := check{op: "ScatterValue"}
	k.root(root, c.of())
	a := &collective.ScatterAny{Root: root}
	if c.of().isRank(root) {
		k.length("vs", len(vs), c.size)
		a.Parts = make([][]byte, c.size)
	}
	for r := range a.Parts {
		if k.err == nil {
			a.Parts[r] = encoded(&k, vs[r])
		}
	}
	return runValue(c.of(), call{Kind: signature.ScatterValue, Root: root}, k.err, a, func() (T, error) { return element.Decode[T](a.Part) })
}

// AllgatherValue returns v of all ranks, in rank order, at every rank.
func AllgatherValue[T any](c *Comm, v T) *future.Future[[]T] {
	k, a := check{op: "AllgatherValue"}, &collective.AllgatherAny{}
	a.Send = encoded(&k, v)
	return runValue(c.of(), call{Kind: signature.AllgatherValue}, k.err, a, func() ([]T, error) { return element.DecodeAll[T](a.Parts) })
}

// Reductions of one value of each rank. The rules of ReduceFunc apply to them
// too, but T may be any type: values that have pointers are sent by encoding/gob to every rank
// that needs them.

// AllreduceValue combines v of all ranks, in the order of ranks, and returns the result at
// every rank. Of a type without pointers it is bit by bit the same. Op is a function, such as
// func(a, b int) int { return a + b }; [Allreduce] takes an [Op].
func AllreduceValue[T any](c *Comm, v T, op func(a, b T) T) *future.Future[T] {
	return reduceValue(c.of(), signature.AllreduceValue, v, op, 0)
}

// ReduceValue is AllreduceValue whose result only rank root gets. The others get the zero
// value.
func ReduceValue[T any](c *Comm, v T, op func(a, b T) T, root int) *future.Future[T] {
	return reduceValue(c.of(), signature.ReduceValue, v, op, root)
}

// ScanValue combines v of ranks 0 to this one.
func ScanValue[T any](c *Comm, v T, op func(a, b T) T) *future.Future[T] {
	return reduceValue(c.of(), signature.ScanValue, v, op, 0)
}

// ExscanValue combines v of the ranks before this one. Rank 0 gets the zero value.
func ExscanValue[T any](c *Comm, v T, op func(a, b T) T) *future.Future[T] {
	return reduceValue(c.of(), signature.ExscanValue, v, op, 0)
}

// reduceValue starts a reduction of values.
func reduceValue[T any](c *comm, kind signature.Kind, v T, op func(a, b T) T, root int) *future.Future[T] {
	if c == nil {
		return nowhere[T](kind.String())
	}
	k, what, apply := check{op: kind.String()}, call{Kind: kind, Root: root}, byUser(op)
	k.root(root, c)
	defined[T](&k, apply)
	of := element.TypeOf[T]()
	if of.Pointers != nil {
		return combineValues(c, what, k, v, op)
	}
	what.Of = of.Element
	b := &[2]T{v} // and the result
	data := values(b[:1], b[1:], apply)
	var a collective.Algorithm
	switch kind {
	case signature.AllreduceValue:
		a = c.chooser.Allreduce(nil, &data)
	case signature.ReduceValue:
		a = c.chooser.Reduce(nil, &data, root)
	default:
		a = c.chooser.Scan(nil, &data, kind == signature.ExscanValue)
	}
	ranks := c.combined(kind, root)
	return runValue(c, what, k.err, a, func() (result T, _ error) {
		if ranks > 0 {
			result = b[1]
		}
		return result, nil
	})
}

// combined returns n if this rank's result of a reduction of values combines the values of ranks 0
// to n-1. If n is 0, it is the zero value.
func (c *comm) combined(kind signature.Kind, root int) int {
	switch {
	case kind == signature.ScanValue:
		return c.rank + 1
	case kind == signature.ExscanValue:
		return c.rank
	case kind == signature.ReduceValue && c.rank != root:
		return 0
	}
	return c.size
}

// combineValues is reduceValue of values that have pointers. They are gathered at the root, or at
// every rank if the reduction has no root.
func combineValues[T any](c *comm, what call, k check, v T, op func(a, b T) T) *future.Future[T] {
	what.Of = signature.Value
	all := &collective.AllgatherAny{GatherAny: collective.GatherAny{Root: what.Root, Send: encoded(&k, v)}}
	var a collective.Algorithm = all
	if what.Kind == signature.ReduceValue {
		a = &all.GatherAny
	}
	ranks := c.combined(what.Kind, what.Root)
	return runValue(c, what, k.err, a, func() (T, error) { return combine(all.Parts, ranks, op) })
}

// combine combines the first n of the encoded values of all ranks.
func combine[T any](parts [][]byte, n int, op func(a, b T) T) (result T, err error) {
	if n == 0 {
		return result, nil
	}
	values, err := element.DecodeAll[T](parts[:n])
	if err != nil {
		return result, err
	}
	element.Call(func() {
		result = values[0]
		for _, v := range values[1:] {
			result = op(result, v)
		}
	})
	return result, nil
}
