package element

import (
	"cmp"
	"reflect"

	"github.com/mpicx/go-mpicx/internal/signature"
)

// A Kernel combines two buffers, element by element, into a third, which may be one of them. All
// have the same length.
type Kernel = func(dst, left, right []byte)

// Predefined returns the kernel of an operation, an index in signature.Ops, for elements of type T.
// It returns nil if the operation is not defined for them.
func Predefined[T any](op int) Kernel {
	if op < 0 || op >= len(signature.Ops) {
		return nil
	}
	return predefined[reflect.TypeFor[T]().Kind()][op]
}

// kernels has the kernel of each operation for one type.
type kernels [len(signature.Ops)]Kernel

// predefined has the kernels for each kind. Making one takes longer than applying it to an element.
var predefined = [reflect.UnsafePointer + 1]kernels{
	reflect.Bool: bools(),
	reflect.Int:  integers[int](), reflect.Int8: integers[int8](), reflect.Int16: integers[int16](),
	reflect.Int32: integers[int32](), reflect.Int64: integers[int64](),
	reflect.Uint: integers[uint](), reflect.Uint8: integers[uint8](), reflect.Uint16: integers[uint16](),
	reflect.Uint32: integers[uint32](), reflect.Uint64: integers[uint64](),
	reflect.Float32: reals[float32](), reflect.Float64: reals[float64](),
	reflect.Complex64: numbers[complex64](), reflect.Complex128: numbers[complex128](),
}

type integral interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type numeric interface {
	integral | ~float32 | ~float64 | ~complex64 | ~complex128
}

func bools() kernels {
	and := each(func(a, b bool) bool { return a && b })
	or := each(func(a, b bool) bool { return a || b })
	xor := each(func(a, b bool) bool { return a != b })
	return kernels{
		signature.LAnd: and, signature.LOr: or, signature.LXor: xor,
		signature.BAnd: and, signature.BOr: or, signature.BXor: xor,
	}
}

func integers[T integral]() kernels {
	k := reals[T]()
	k[signature.BAnd] = each(func(a, b T) T { return a & b })
	k[signature.BOr] = each(func(a, b T) T { return a | b })
	k[signature.BXor] = each(func(a, b T) T { return a ^ b })
	return k
}

func reals[T integral | ~float32 | ~float64]() kernels {
	k := numbers[T]()
	k[signature.Max], k[signature.Min] = maxima[T], minima[T]
	return k
}

func numbers[T numeric]() kernels {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	return kernels{
		signature.Sum: sums[T], signature.Prod: products[T],
		signature.LAnd: each(func(a, b T) T { return truth(a != 0 && b != 0) }),
		signature.LOr:  each(func(a, b T) T { return truth(a != 0 || b != 0) }),
		signature.LXor: each(func(a, b T) T { return truth((a != 0) != (b != 0)) }),
	}
}

// each returns the kernel that applies f to each element.
func each[T any](f func(a, b T) T) Kernel {
	return func(dst, left, right []byte) {
		d, l, r := Slice[T](dst), Slice[T](left), Slice[T](right)
		for i := range d {
			d[i] = f(l[i], r[i])
		}
	}
}

// The commonest kernels are loops of their own: by each, they take three times as long.

func sums[T numeric](dst, left, right []byte) {
	d, l, r := Slice[T](dst), Slice[T](left), Slice[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = l[i] + r[i]
	}
}

func products[T numeric](dst, left, right []byte) {
	d, l, r := Slice[T](dst), Slice[T](left), Slice[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = l[i] * r[i]
	}
}

func maxima[T cmp.Ordered](dst, left, right []byte) {
	d, l, r := Slice[T](dst), Slice[T](left), Slice[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = max(l[i], r[i])
	}
}

func minima[T cmp.Ordered](dst, left, right []byte) {
	d, l, r := Slice[T](dst), Slice[T](left), Slice[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = min(l[i], r[i])
	}
}
