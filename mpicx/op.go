package mpicx

import (
	"cmp"
	"fmt"
	"reflect"
)

// An Op combines two values into one (MPI_Op). Reductions apply it element by element.
type Op int

// The predefined operations (MPI_SUM and so on). Sum and Prod apply to numbers, Max and Min to
// integers and floats, BAnd, BOr and BXor to integers and bools. LAnd, LOr and LXor apply to
// every Scalar: zero and false count as false, and the result is 1 or true, or zero or false.
const (
	Sum Op = iota
	Prod
	Max
	Min
	LAnd
	BAnd
	LOr
	BOr
	LXor
	BXor
)

var opNames = [...]string{"Sum", "Prod", "Max", "Min", "LAnd", "BAnd", "LOr", "BOr", "LXor", "BXor"}

func (op Op) String() string {
	if op < 0 || int(op) >= len(opNames) {
		return fmt.Sprintf("Op(%d)", int(op))
	}
	return opNames[op]
}

type reduction = func(dst, left, right []byte)

// opFor returns op for elements of type T, or nil if op is not defined for them.
func opFor[T Scalar](op Op) reduction {
	if op < 0 || op > BXor {
		return nil
	}
	return reductions[reflect.TypeFor[T]().Kind()][op]
}

// reductions has every operation for every kind. Making one takes longer than applying it to an
// element.
var reductions = func() (all [reflect.Complex128 + 1][BXor + 1]reduction) {
	for kind := range all {
		for op := range all[kind] {
			all[kind][op] = reductionOf(reflect.Kind(kind), Op(op))
		}
	}
	return all
}()

func reductionOf(kind reflect.Kind, op Op) reduction {
	switch kind {
	case reflect.Bool:
		return boolean(op)
	case reflect.Int8:
		return integer[int8](op)
	case reflect.Int16:
		return integer[int16](op)
	case reflect.Int32:
		return integer[int32](op)
	case reflect.Int64:
		return integer[int64](op)
	case reflect.Int:
		return integer[int](op)
	case reflect.Uint8:
		return integer[uint8](op)
	case reflect.Uint16:
		return integer[uint16](op)
	case reflect.Uint32:
		return integer[uint32](op)
	case reflect.Uint64:
		return integer[uint64](op)
	case reflect.Uint:
		return integer[uint](op)
	case reflect.Float32:
		return float[float32](op)
	case reflect.Float64:
		return float[float64](op)
	case reflect.Complex64:
		return complexes[complex64](op)
	case reflect.Complex128:
		return complexes[complex128](op)
	}
	return nil
}

// each returns the reduction that applies f to each element.
func each[T any](f func(a, b T) T) reduction {
	return func(dst, left, right []byte) {
		d, l, r := of[T](dst), of[T](left), of[T](right)
		for i := range d {
			d[i] = f(l[i], r[i])
		}
	}
}

// The commonest reductions are loops of their own: by each, they take three times as long.

func sums[T numeric](dst, left, right []byte) {
	d, l, r := of[T](dst), of[T](left), of[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = l[i] + r[i]
	}
}

func products[T numeric](dst, left, right []byte) {
	d, l, r := of[T](dst), of[T](left), of[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = l[i] * r[i]
	}
}

func maxima[T cmp.Ordered](dst, left, right []byte) {
	d, l, r := of[T](dst), of[T](left), of[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = max(l[i], r[i])
	}
}

func minima[T cmp.Ordered](dst, left, right []byte) {
	d, l, r := of[T](dst), of[T](left), of[T](right)
	l, r = l[:len(d)], r[:len(d)] // no bounds checks below
	for i := range d {
		d[i] = min(l[i], r[i])
	}
}

func boolean(op Op) reduction {
	switch op {
	case LAnd, BAnd:
		return each(func(a, b bool) bool { return a && b })
	case LOr, BOr:
		return each(func(a, b bool) bool { return a || b })
	case LXor, BXor:
		return each(func(a, b bool) bool { return a != b })
	}
	return nil
}

func integer[T integral](op Op) reduction {
	switch op {
	case Max:
		return maxima[T]
	case Min:
		return minima[T]
	case BAnd:
		return each(func(a, b T) T { return a & b })
	case BOr:
		return each(func(a, b T) T { return a | b })
	case BXor:
		return each(func(a, b T) T { return a ^ b })
	}
	return number[T](op)
}

func float[T ~float32 | ~float64](op Op) reduction {
	switch op {
	case Max:
		return maxima[T]
	case Min:
		return minima[T]
	}
	return number[T](op)
}

func complexes[T ~complex64 | ~complex128](op Op) reduction { return number[T](op) }

func number[T numeric](op Op) reduction {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	switch op {
	case Sum:
		return sums[T]
	case Prod:
		return products[T]
	case LAnd:
		return each(func(a, b T) T { return truth(a != 0 && b != 0) })
	case LOr:
		return each(func(a, b T) T { return truth(a != 0 || b != 0) })
	case LXor:
		return each(func(a, b T) T { return truth((a != 0) != (b != 0)) })
	}
	return nil
}

type integral interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type numeric interface {
	integral | ~float32 | ~float64 | ~complex64 | ~complex128
}
