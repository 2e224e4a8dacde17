package mpicx

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// encodeValue encodes v by encoding/gob.
func encodeValue[T any](op string, v T) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&v); err != nil {
		return nil, &MPIError{Op: op, Class: ClassType, Text: fmt.Sprintf("value of type %T: %v", v, err), err: err}
	}
	return b.Bytes(), nil
}

// decodeValue is the inverse of encodeValue. The bytes come from another rank: if they are
// no T, or if T's own decoder panics, the result is an error.
func decodeValue[T any](op string, b []byte) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			err = &MPIError{Op: op, Class: ClassType, Text: fmt.Sprintf("message of %d bytes is no %T: %v", len(b), v, err), err: err}
		}
	}()
	err = gob.NewDecoder(bytes.NewReader(b)).Decode(&v)
	return v, err
}

func decodeValues[T any](op string, parts [][]byte) ([]T, error) {
	if parts == nil {
		return nil, nil
	}
	vs := make([]T, len(parts))
	for i, b := range parts {
		var err error
		if vs[i], err = decodeValue[T](op, b); err != nil {
			return nil, err
		}
	}
	return vs, nil
}

// SendValue sends a value of any type that encoding/gob can encode. RecvValue receives it.
// Count of the Status is the number of encoded bytes.
func SendValue[T any](c *Comm, v T, dest, tag int) *future.Future[Status] {
	if c == nil {
		return nowhere[Status]("SendValue")
	}
	b, err := encodeValue("SendValue", v)
	if err != nil {
		return failed[Status](c, err)
	}
	return c.send("SendValue", b, dest, tag, 1, transport.Shared)
}

// RecvValue receives a value of type T that SendValue sent.
func RecvValue[T any](c *Comm, source, tag int) *future.Future[T] {
	if c == nil {
		return nowhere[T]("RecvValue")
	}
	o := new(receipt[T])
	o.request.Take = true
	return o.receive(c, "RecvValue", source, tag, func(r *transport.Request) (T, error) {
		return decodeValue[T]("RecvValue", r.Buf)
	})
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
	if c.Rank() == root && k.err == nil {
		a.Buf, k.err = encodeValue(op, v)
	}
	return runValue(c, op, k.err, a, func() (T, error) {
		if c.Rank() == root {
			return v, nil
		}
		return decodeValue[T](op, a.Buf)
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
	a := &collective.GatherAny{Root: root}
	if k.err == nil {
		a.Send, k.err = encodeValue(op, v)
	}
	return runValue(c, op, k.err, a, func() ([]T, error) { return decodeValues[T](op, a.Parts) })
}

// AllgatherValue returns v of all ranks, in rank order, at every rank.
func AllgatherValue[T any](c *Comm, v T) *future.Future[[]T] {
	const op = "AllgatherValue"
	if c == nil {
		return nowhere[[]T](op)
	}
	a := &collective.AllgatherAny{}
	var err error
	a.Send, err = encodeValue(op, v)
	return runValue(c, op, err, a, func() ([]T, error) { return decodeValues[T](op, a.Parts) })
}

// runValue is run for an operation whose result value returns.
func runValue[T any](c *Comm, name string, bad error, a collective.Algorithm, value func() (T, error)) *future.Future[T] {
	o := &collectiveValue[T]{comm: c, value: value}
	o.cell().Keep(c.keeper)
	c.start(&o.exchange, name, bad, a, o)
	return o.Future()
}

type collectiveValue[T any] struct {
	future.Promise[T]
	comm     *Comm
	exchange collective.Exchange
	value    func() (T, error)
}

func (o *collectiveValue[T]) cell() *waiting.Cell { return waiting.Of(o.Future()) }

// Ended ends the operation.
func (o *collectiveValue[T]) Ended(err error) {
	var v T
	if err == nil {
		func() {
			defer future.Catch(&err)
			v, err = o.value()
		}()
	}
	o.Complete(v, o.comm.failure(o.exchange.Name, err))
}
