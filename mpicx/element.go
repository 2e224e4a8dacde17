package mpicx

import (
	"reflect"
	"sync"

	"github.com/mpicx/go-mpicx/internal/signature"
)

// Elements of buffers are sent as they are in memory. Their type must therefore be one whose memory
// means the same at another rank: a Scalar, or an array or struct of Scalars.

// elements returns the signature of messages of T, or an error if T can't be the type of a buffer's
// elements. For the most frequent types it does not need reflect.
func elements[T any](op string) (signature.Word, error) {
	switch any((*T)(nil)).(type) {
	case *float64:
		return signature.Message(signature.Float64), nil
	case *int:
		return signature.Message(signature.Int), nil
	case *byte:
		return signature.Message(signature.Bytes), nil
	}
	if bad := element[T](op); bad != nil {
		return 0, bad
	}
	return signatureOf[T](), nil
}

// element returns an error if T can't be the type of a buffer's elements.
func element[T any](op string) error {
	switch any((*T)(nil)).(type) { // as in elements
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
