package element

import (
	"context"
	"iter"
	"runtime/pprof"
	"unsafe"

	"github.com/mpicx/go-mpicx/future"
)

// A step of a reduction runs on whichever goroutine brings the step's last message, perhaps one on
// which another operation depends. If the user's function waited for that operation, it would wait
// for itself. So whatever would block in the function asks InFunction, and throws instead, which
// ends the reduction.
//
// The function runs in a coroutine, which runtime.Goexit may end. On the caller's goroutine nothing
// could keep Goexit from ending that, which may be another rank's. A goroutine of its own would do,
// but switching to one wakes other threads: between four processes on two cores AllreduceFunc then
// takes four times as long. No later call can resume the coroutine, because the runtime crashes if
// a goroutine that is bound to a thread resumes one that was made elsewhere. Instead one call
// combines as many values as there are. A label for profiles marks the coroutine, and the
// goroutines that the function starts, which inherit it.

// functionLabel is the label, as a context.
var functionLabel = pprof.WithLabels(context.Background(), pprof.Labels("mpicx", "function of a reduction"))

// labels returns the labels of this goroutine. Package runtime promises to keep its function for
// such use.
//
//go:linkname labels runtime/pprof.runtime_getProfLabel
func labels() unsafe.Pointer

// marked is the value that labels returns in the function of a reduction.
var marked = func() (found unsafe.Pointer) {
	Call(func() { found = labels() })
	return found
}()

// InFunction says whether the caller was called by Call or by the kernel of a user's function, or
// is a goroutine that such a function has started.
func InFunction() bool { return labels() == marked }

// Func returns the kernel that applies a user's function to each element, by one Call. Its right
// may be several values, one behind the other, which it combines with left in order. It returns nil
// if f is nil.
func Func[T any](f func(a, b T) T) Kernel {
	if f == nil {
		return nil
	}
	apply := each(f)
	return func(dst, left, right []byte) {
		Call(func() {
			for l, r := left, right; len(r) > 0; l, r = dst, r[len(dst):] {
				apply(dst, l, r)
			}
		})
	}
}

// Call runs apply, which calls a user's function. If the function throws or panics, Call panics
// with a future.Thrown or a *future.Panicked. It throws future.ErrGoexit if the function calls
// runtime.Goexit.
func Call(apply func()) {
	run, _ := iter.Pull(func(func(struct{}) bool) {
		err := future.ErrGoexit         // if apply neither returns nor panics
		defer func() { rethrow(err) }() // always a panic: iter.Pull would end its caller, too, by Goexit
		defer future.Catch(&err)
		pprof.SetGoroutineLabels(functionLabel)
		apply()
		err = nil
	})
	run()
}

// rethrow panics again with err, which future.Catch has caught.
func rethrow(err error) {
	switch err := err.(type) {
	case nil:
	case *future.Panicked:
		panic(err)
	default:
		panic(future.Thrown{Err: err})
	}
}
