package element_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/signature"
)

type operations[T any] map[int]func(a, b T) T

// check compares the kernel of each operation with a function, and finds none where there is none.
func check[T any](t *testing.T, values []T, functions operations[T]) {
	t.Helper()
	for op := -1; op <= len(signature.Ops); op++ {
		kernel, f := element.Predefined[T](op), functions[op]
		require.Equal(t, f != nil, kernel != nil, "operation %d on %T", op, values)
		if f == nil {
			continue
		}
		for shift := range values { // each value meets each
			right, want, dst := slices.Concat(values[shift:], values[:shift]), make([]T, len(values)), make([]T, len(values))
			for i := range want {
				want[i] = f(values[i], right[i])
			}
			kernel(element.Bytes(dst), element.Bytes(values), element.Bytes(right))
			require.Equal(t, want, dst, "%s of %v and %v", signature.Ops[op], values, right)
			kernel(element.Bytes(right), element.Bytes(values), element.Bytes(right))
			require.Equal(t, want, right, "%s in place", signature.Ops[op])
		}
	}
}

type integral interface {
	int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint
}

func numbers[T integral | ~float32 | ~float64 | ~complex64 | ~complex128]() operations[T] {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	return operations[T]{
		signature.Sum:  func(a, b T) T { return a + b },
		signature.Prod: func(a, b T) T { return a * b },
		signature.LAnd: func(a, b T) T { return truth(a != 0 && b != 0) },
		signature.LOr:  func(a, b T) T { return truth(a != 0 || b != 0) },
		signature.LXor: func(a, b T) T { return truth((a != 0) != (b != 0)) },
	}
}

func reals[T integral | ~float32 | ~float64]() operations[T] {
	all := numbers[T]()
	all[signature.Max] = func(a, b T) T { return max(a, b) }
	all[signature.Min] = func(a, b T) T { return min(a, b) }
	return all
}

func integers[T integral]() operations[T] {
	all := reals[T]()
	all[signature.BAnd] = func(a, b T) T { return a & b }
	all[signature.BOr] = func(a, b T) T { return a | b }
	all[signature.BXor] = func(a, b T) T { return a ^ b }
	return all
}

type celsius float64

type flag bool

// Every operation on each kind of types.
func TestPredefined(t *testing.T) {
	check(t, []int8{0, 1, -1, 100, -128}, integers[int8]())
	check(t, []int16{0, 1, -1, 100, -1 << 15}, integers[int16]())
	check(t, []int32{0, 1, -1, 100, -1 << 31}, integers[int32]())
	check(t, []int64{0, 1, -1, 100, -1 << 63}, integers[int64]())
	check(t, []int{0, 1, -3, 12}, integers[int]())
	check(t, []uint8{0, 1, 5, 255}, integers[uint8]())
	check(t, []uint16{0, 1, 5, 65535}, integers[uint16]())
	check(t, []uint32{0, 1, 1 << 31}, integers[uint32]())
	check(t, []uint64{0, 1, 1 << 63}, integers[uint64]())
	check(t, []uint{0, 1, 1 << 31}, integers[uint]())
	check(t, []float32{0, 1, -2.5}, reals[float32]())
	check(t, []celsius{0, 1, -2.5}, reals[celsius]())
	check(t, []complex64{0, 1, 2i, -1 + 3i}, numbers[complex64]())
	check(t, []complex128{0, 1, 2i}, numbers[complex128]())
	and := func(a, b flag) flag { return a && b }
	or := func(a, b flag) flag { return a || b }
	xor := func(a, b flag) flag { return a != b }
	check(t, []flag{false, true}, operations[flag]{
		signature.LAnd: and, signature.LOr: or, signature.LXor: xor,
		signature.BAnd: and, signature.BOr: or, signature.BXor: xor,
	})
	check(t, []string{""}, nil)
	check(t, []struct{ X int }{{}}, nil)
}

// A user's function knows that it is one, as do the goroutines that it starts, and ends as its
// caller can handle it.
func TestFunc(t *testing.T) {
	errThrown, trouble := errors.New("thrown"), errors.New("trouble")
	for want, end := range map[error]func(){
		nil:              func() {},
		errThrown:        func() { panic(future.Thrown{Err: errThrown}) },
		trouble:          func() { panic(trouble) },
		future.ErrGoexit: runtime.Goexit,
	} {
		dst, err := make([]int, 2), error(nil)
		func() {
			defer future.Catch(&err)
			element.Func(func(a, b int) int {
				inside := make(chan bool)
				go func() { inside <- element.InFunction() }()
				require.True(t, element.InFunction() && <-inside)
				end()
				return a - b
			})(element.Bytes(dst), element.Bytes([]int{5, 6}), element.Bytes([]int{1, 2, 1, 1}))
		}()
		require.False(t, element.InFunction())
		require.ErrorIs(t, err, want)
		_, panicked := errors.AsType[*future.Panicked](err)
		require.Equal(t, want == trouble, panicked)
		if want == nil {
			require.Equal(t, []int{3, 3}, dst)
		}
	}
	require.Nil(t, element.Func[int](nil))
}
