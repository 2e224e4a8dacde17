package mpicx

import (
	"encoding/binary"
	"hash/fnv"
	"reflect"
	"sync"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// call is a collective call, which its messages carry.
type call = signature.Call

// elementOf returns the element that T is in a call.
func elementOf[T any]() signature.Element {
	switch any((*T)(nil)).(type) { // the most frequent types are found sooner so
	case *float64:
		return signature.Float64
	case *int:
		return signature.Int
	}
	return signature.ElementOf(reflect.TypeFor[T]().Kind())
}

// signatureOf returns the signature of a message whose elements are of type T, which has no
// pointers: structs fit if their fields have the same types at the same places.
func signatureOf[T any]() signature.Word {
	switch any((*T)(nil)).(type) {
	case *float64:
		return signature.Message(signature.Float64)
	case *byte:
		return 0
	}
	return signatureOfType(reflect.TypeFor[T]())
}

func signatureOfType(t reflect.Type) signature.Word {
	of := signature.ElementOf(t.Kind())
	if of != signature.Struct {
		return signature.Message(of)
	}
	if w, known := structs.Load(t); known {
		return w.(signature.Word)
	}
	digest := fnv.New64a()
	digest.Write(layout(nil, t, 0))
	w := signature.Structs(int(t.Size()), digest.Sum64())
	structs.Store(t, w)
	return w
}

// structs has the signatures of types that are structs or arrays.
var structs sync.Map // reflect.Type to signature.Word

// valueSignature is that of a message of SendValue.
var valueSignature = signature.Message(signature.Value)

// layout appends the element and the offset of each field of a type.
func layout(b []byte, t reflect.Type, at uintptr) []byte {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			b = layout(b, f.Type, at+f.Offset)
		}
	case reflect.Array:
		b = append(b, '[')
		b = binary.AppendUvarint(b, uint64(t.Len()))
		b = layout(b, t.Elem(), at)
	default:
		b = append(b, byte(signature.ElementOf(t.Kind())))
		b = binary.AppendUvarint(b, uint64(at))
	}
	return b
}

// fits returns the error of a receive or probe whose message has another signature. It is inlined,
// since nearly all have the same.
func fits(op string, r *transport.Request) error {
	if r.Signature == r.Status.Signature {
		return nil
	}
	return compare(op, r)
}

func compare(op string, r *transport.Request) error {
	if r.Kind == transport.Sending || r.Err != nil && !is[*transport.TruncateError](r.Err) {
		return nil
	}
	if s := &r.Status; !r.Signature.Fits(s.Signature) {
		return mpiErrorf(op, ClassType, "message of type %v from rank %d with tag %d, expected type %v", s.Signature, s.Source, s.Tag, r.Signature)
	}
	return nil
}
