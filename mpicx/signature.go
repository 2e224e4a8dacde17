package mpicx

import (
	"encoding/binary"
	"hash/fnv"
	"reflect"
	"sync"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// call describes a collective call. Its messages carry the description.
type call = signature.Call

// elementOf returns the element of a call on elements of type T.
func elementOf[T any]() signature.Element {
	switch any((*T)(nil)).(type) { // faster than reflect for the most frequent types
	case *float64:
		return signature.Float64
	case *int:
		return signature.Int
	}
	return signature.ElementOf(reflect.TypeFor[T]().Kind())
}

// signatureOf returns the signature of a message whose elements are of type T, which has no
// pointers. Two structs have the same signature if their fields have the same types and offsets.
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

// structs caches the signatures of structs and arrays.
var structs sync.Map // reflect.Type to signature.Word

// valueSignature is the signature of messages of SendValue.
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

// fits returns the error of a receive or probe whose message has another signature, which is rare.
// It is inlined.
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
