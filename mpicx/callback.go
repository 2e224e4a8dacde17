package mpicx

import (
	"context"
	"fmt"
	"iter"
	"runtime/pprof"
	"unsafe"

	"github.com/mpicx/go-mpicx/future"
)

// A step of a reduction runs on the goroutine that brings the step's last message, perhaps another
// rank's. That goroutine waits while the user's function runs. If the function waited for an
// operation, it could wait for that goroutine. So whatever would block in the function throws
// instead, which ends the reduction.
//
// The function runs in a coroutine, which runtime.Goexit may end. A goroutine would do, but
// switching to one wakes other threads: between four processes on two cores AllreduceFunc then
// takes four times as long. A label for profiles marks the coroutine, and the goroutines that the
// function starts, which inherit it.

// functionLabel is the label, as a context.
var functionLabel = pprof.WithLabels(context.Background(), pprof.Labels("mpicx", "function of a reduction"))

// labels returns the labels of this goroutine. Package runtime promises to keep its function for
// such use.
//
//go:linkname labels runtime/pprof.runtime_getProfLabel
func labels() unsafe.Pointer

// marked is the value that labels returns in the function of a reduction.
var marked = func() (found unsafe.Pointer) {
	callUser(func() { found = labels() })
	return found
}()

// inReduction says whether the caller was called by a reduction's function, or by a goroutine that
// the function has started.
func inReduction() bool { return labels() == marked }

// byUser returns the reduction that applies a user's function to each element, or nil if f is nil.
func byUser[T any](f func(a, b T) T) reduction {
	if f == nil {
		return nil
	}
	apply := each(f)
	return func(dst, left, right []byte) { callUser(func() { apply(dst, left, right) }) }
}

// callUser runs apply, which calls the function of a reduction. If the function throws, panics, or
// calls runtime.Goexit, callUser panics with a future.Thrown or a *future.Panicked.
func callUser(apply func()) {
	run, _ := iter.Pull(func(func(struct{}) bool) {
		err := ErrGoexit
		defer func() { rethrow(err) }() // run panics with this. Without a panic it would end its goroutine by Goexit, too
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

// A reentryError ends a reduction, which reports it as an *MPIError.
type reentryError struct{ does, what, comm string }

func (e *reentryError) Error() string {
	return fmt.Sprintf("its function %s %s on %s, expected one that neither waits nor begins a collective operation", e.does, e.what, e.comm)
}
