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
	for kind, operation := range operations {
		for op := range all[kind] {
			if operation != nil {
				all[kind][op] = operation(Op(op))
			}
		}
	}
	return all
}()

// operations has the operations for each kind.
var operations = [reflect.Complex128 + 1]func(Op) reduction{
	reflect.Bool: boolean,
	reflect.Int:  integer[int], reflect.Int8: integer[int8], reflect.Int16: integer[int16], reflect.Int32: integer[int32], reflect.Int64: integer[int64],
	reflect.Uint: integer[uint], reflect.Uint8: integer[uint8], reflect.Uint16: integer[uint16], reflect.Uint32: integer[uint32], reflect.Uint64: integer[uint64],
	reflect.Float32: float[float32], reflect.Float64: float[float64],
	reflect.Complex64: number[complex64], reflect.Complex128: number[complex128],
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

// A Loc is a value and its location: its rank, or its index in data that the ranks share.
// MinLoc and MaxLoc combine Locs:
//
//	least, err := mpicx.AllreduceValue(c, mpicx.Loc[float64]{Value: x, Index: c.Rank()}, mpicx.MinLoc).Get(ctx)
type Loc[T cmp.Ordered] struct {
	Value T
	Index int
}

// MinLoc returns the smaller value with its index, and of two equal values the one with the
// lower index (MPI_MINLOC). If a value is NaN, the result is NaN, as with Min.
func MinLoc[T cmp.Ordered](a, b Loc[T]) Loc[T] { return better(a, b, a.Value < b.Value) }

// MaxLoc is MinLoc for the larger value (MPI_MAXLOC).
func MaxLoc[T cmp.Ordered](a, b Loc[T]) Loc[T] { return better(a, b, a.Value > b.Value) }

// better returns the better of a and b: the one that isFirst, or that is a NaN. If both or neither
// are, it returns the one with the lower index.
func better[T cmp.Ordered](a, b Loc[T], isFirst bool) Loc[T] {
	aNaN, bNaN := a.Value != a.Value, b.Value != b.Value
	switch tie := a.Value == b.Value || aNaN && bNaN; {
	case tie && a.Index <= b.Index, !tie && (aNaN || isFirst && !bNaN):
		return a
	}
	return b
}
