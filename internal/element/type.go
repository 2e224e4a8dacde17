package element

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"reflect"
	"sync"

	"github.com/mpicx/go-mpicx/internal/signature"
)

// Elements of buffers are sent as they are in memory. Their type must therefore be one whose memory
// means the same in another process: a number or bool, or an array or struct of such types.

// A Type describes a type of elements. It never changes.
type Type struct {
	Size      int               // of an element, in bytes
	Element   signature.Element // for the signature of a call
	Signature signature.Word    // of a message; equal for structs whose fields have equal types and offsets
	Pointers  error             // nil: the type has no pointers
	Unfit     error             // nil: the type may be that of a buffer's elements. It has bytes, but no pointers
}

// A Buffer is the memory of a slice, and the type of its elements.
type Buffer struct {
	Bytes []byte
	*Type
}

// Of returns buf as a Buffer.
func Of[T any](buf []T) Buffer { return Buffer{Bytes(buf), TypeOf[T]()} }

// Value is the type of the bytes that Encode returns.
var Value = &Type{Size: 1, Element: signature.Value, Signature: signature.Message(signature.Value)}

// basic has the types of each kind of number, and of bool.
var basic = func() (all [reflect.Complex128 + 1]*Type) {
	for _, v := range []any{
		false, 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), uintptr(0),
		float32(0), float64(0), complex64(0), complex128(0),
	} {
		t := reflect.TypeOf(v)
		all[t.Kind()] = newType(t)
	}
	return all
}()

// types caches all other types.
var types sync.Map // reflect.Type to *Type

// TypeOf describes T.
func TypeOf[T any]() *Type {
	t := reflect.TypeFor[T]()
	if k := t.Kind(); k <= reflect.Complex128 {
		return basic[k]
	}
	found, known := types.Load(t)
	if !known {
		found, _ = types.LoadOrStore(t, newType(t))
	}
	return found.(*Type)
}

func newType(t reflect.Type) *Type {
	e := signature.ElementOf(t.Kind())
	n := &Type{Size: int(t.Size()), Element: e, Signature: signature.Message(e)}
	if field, has := pointerIn(t, ""); has {
		n.Pointers = refused("elements of type %v have pointers%s, expected a type of fixed size without any", t, field)
	} else if e == signature.Struct {
		digest := fnv.New64a()
		digest.Write(layout(nil, t, 0))
		n.Signature = signature.Structs(n.Size, digest.Sum64())
	}
	n.Unfit = n.Pointers
	if n.Size == 0 {
		n.Unfit = refused("elements of type %v have no bytes, expected at least one", t)
	}
	return n
}

func refused(format string, args ...any) error { return &Error{text: fmt.Sprintf(format, args...)} }

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
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String,
		reflect.UnsafePointer:
		return "", true
	}
	return "", false
}

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
