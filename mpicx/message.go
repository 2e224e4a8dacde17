package mpicx

import (
	"reflect"
	"unsafe"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// AnySource and AnyTag receive from whichever rank, with whichever tag
// (MPI_ANY_SOURCE, MPI_ANY_TAG).
const (
	AnySource = -1
	AnyTag    = -1
)

var ( // they are the transport's
	_ = [1]struct{}{AnySource - transport.AnySource: {}}
	_ = [1]struct{}{AnyTag - transport.AnyTag: {}}
)

// Status describes a message that was sent, received or probed.
type Status struct {
	Source, Tag int
	Count       int // in elements of the operation's type
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

// of is bytesOf's inverse, for memory that was made as a []T.
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

// plain returns an error if T has pointers, so that its memory means nothing to
// another process.
func plain[T any](op string) error {
	if t := reflect.TypeFor[T](); hasPointers(t) {
		return mpiErrorf(op, ClassType, "elements of type %v have pointers, expected a type of fixed size without any", t)
	}
	return nil
}

func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		return true
	}
	return false
}

// sentFuture is a future that is done with a status.
type sentFuture struct {
	status Status
	future.Promise[Status]
}
