package mpicx

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"reflect"
	"sync"
	"unsafe"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// AnySource and AnyTag receive from any rank, and with any tag (MPI_ANY_SOURCE, MPI_ANY_TAG).
const (
	AnySource = -1
	AnyTag    = -1
)

var ( // the transport has the same values
	_ = [1]struct{}{AnySource - transport.AnySource: {}}
	_ = [1]struct{}{AnyTag - transport.AnyTag: {}}
)

// ProcNull is the rank of no process (MPI_PROC_NULL): the neighbour beyond the border of a
// grid. A send to it, or a receive or probe from it, completes at once, does not touch its
// buffer, and has the Status {ProcNull, AnyTag, 0}. Its value is none that rank-1 or rank-2
// yields by mistake: those are errors.
const ProcNull = math.MinInt32

// statusOfNobody is the Status of a receive from ProcNull.
var statusOfNobody = Status{ProcNull, AnyTag, 0}

// Status describes a message that was sent, received or probed (MPI_Status). Its Count is that
// of MPI_Get_count.
type Status struct {
	Source, Tag int
	Count       int // in elements of the operation's type
}

// Received is a value and the Status of the message that carried it.
type Received[T any] struct {
	Value  T
	Status Status
}

// A Scalar is an element type of buffers: fixed in size and free of pointers.
type Scalar interface {
	~bool | ~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// bytesOf returns the memory of buf, never nil.
func bytesOf[T any](buf []T) []byte {
	if len(buf) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*sizeOf[T]())
}

// of is the inverse of bytesOf, for memory that was allocated as a []T.
func of[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}

func sizeOf[T any]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// sentFuture is a future that is done with a status.
type sentFuture struct {
	status Status
	future.Promise[Status]
}

// Elements of buffers are sent as they are in memory. Their type must therefore be one whose memory
// means the same at another rank: a Scalar, or an array or struct of Scalars.

// elements returns the signature of messages of T, or an error if T can't be the type of a buffer's
// elements.
func elements[T any](op string) (signature.Word, error) {
	if bad := element[T](op); bad != nil {
		return 0, bad
	}
	return signatureOf[T](), nil
}

// element returns an error if T can't be the type of a buffer's elements. For the most frequent
// types it does not need reflect, as signatureOf does not.
func element[T any](op string) error {
	switch any((*T)(nil)).(type) {
	case *float64, *int, *byte:
		return nil
	}
	t := reflect.TypeFor[T]()
	if t.Size() == 0 {
		return mpiErrorf(op, ClassType, "elements of type %v have no bytes, expected at least one", t)
	}
	return plain[T](op)
}

// plain returns an error if T has pointers, so that its memory means nothing to
// another process.
func plain[T any](op string) error {
	t := reflect.TypeFor[T]()
	if k := t.Kind(); reflect.Bool <= k && k <= reflect.Complex128 {
		return nil
	}
	found, known := pointers.Load(t)
	if !known {
		field, has := pointerIn(t, "")
		found, _ = pointers.LoadOrStore(t, pointer{field, has})
	}
	if p := found.(pointer); p.has {
		return mpiErrorf(op, ClassType, "elements of type %v have pointers%s, expected a type of fixed size without any", t, p.field)
	}
	return nil
}

// pointers caches the results of pointerIn, by type.
var pointers sync.Map

type pointer struct {
	field string
	has   bool
}

// pointerIn says whether a type has pointers. For an error's text it also returns the field, if the
// type is a struct; path is the prefix of its name.
func pointerIn(t reflect.Type, path string) (field string, has bool) {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() > 0 {
			return pointerIn(t.Elem(), path)
		}
	case reflect.Struct:
		for f := range t.Fields() {
			if field, has = pointerIn(f.Type, path+f.Name+"."); has {
				if field == "" {
					field = ": field " + path + f.Name + " " + f.Type.String()
				}
				return field, true
			}
		}
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		return "", true
	}
	return "", false
}

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
	case *int:
		return signature.Message(signature.Int)
	case *byte:
		return signature.Message(signature.Bytes)
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
		for f := range t.Fields() {
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

// fits returns the error of a receive or probe whose message has another signature that does not
// fit.
func fits(op string, r *transport.Request) error {
	if r.Kind == transport.Sending || r.Err != nil && !is[*transport.TruncateError](r.Err) {
		return nil
	}
	if s := &r.Status; !r.Signature.Fits(s.Signature) {
		return mpiErrorf(op, ClassType, "message of type %v from rank %d with tag %d, expected type %v", s.Signature, s.Source, s.Tag, r.Signature)
	}
	return nil
}
