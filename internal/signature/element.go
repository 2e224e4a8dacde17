package signature

import (
	"fmt"
	"reflect"
)

// An Element is the type of a message's elements.
type Element uint8

// Bytes fit every element, as MPI_PACKED does. A Value is encoded by encoding/gob. A Struct has
// no pointers; a word has a digest of its layout.
const (
	Bytes Element = iota
	Bool
	Int
	Int8
	Int16
	Int32
	Int64
	Uint
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	Struct
	Value
)

var elementNames = [...]string{
	Bytes: "byte", Bool: "bool", Int: "int", Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64",
	Uint: "uint", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64", Float32: "float32", Float64: "float64",
	Complex64: "complex64", Complex128: "complex128", Struct: "struct", Value: "value",
}

func (e Element) String() string {
	if int(e) < len(elementNames) {
		return elementNames[e]
	}
	return fmt.Sprintf("Element(%d)", uint8(e))
}

// ofKind maps kinds of Go types to their elements.
var ofKind = [...]Element{
	reflect.Bool: Bool, reflect.Int: Int, reflect.Int8: Int8, reflect.Int16: Int16, reflect.Int32: Int32, reflect.Int64: Int64,
	reflect.Uint: Uint, reflect.Uint8: Bytes, reflect.Uint16: Uint16, reflect.Uint32: Uint32, reflect.Uint64: Uint64,
	reflect.Float32: Float32, reflect.Float64: Float64, reflect.Complex64: Complex64, reflect.Complex128: Complex128,
	reflect.Array: Struct, reflect.Struct: Struct, reflect.UnsafePointer: Bytes,
}

// ElementOf returns the element of a kind of type that has no pointers.
func ElementOf(k reflect.Kind) Element { return ofKind[k] }

// canonical returns the element that looks the same in memory: an int is an int64 if it has 64
// bits.
func (e Element) canonical() Element {
	const wide = ^uint(0) >> 63 // 1: it has
	switch e {
	case Int:
		return [...]Element{Int32, Int64}[wide]
	case Uint:
		return [...]Element{Uint32, Uint64}[wide]
	}
	return e
}

// fits says whether the memory of e may be read as f.
func (e Element) fits(f Element) bool {
	return e == f || e == Bytes || f == Bytes || e.canonical() == f.canonical()
}

// Size returns how many bytes an element has; 0: the Element does not determine it.
func (e Element) Size() int {
	switch e.canonical() {
	case Bytes, Bool, Int8:
		return 1
	case Int16, Uint16:
		return 2
	case Int32, Uint32, Float32:
		return 4
	case Int64, Uint64, Float64, Complex64:
		return 8
	case Complex128:
		return 16
	}
	return 0
}
