package mpicx

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
)

// While the function of a reduction runs, the goroutine that has brought a message waits for it. It may
// be a goroutine of any rank. If the function waited for another operation, it could wait for that
// goroutine. So whatever would block in the function throws instead, which ends the reduction. This
// can't be checked in other goroutines that the function starts.

// calls counts the functions of reductions that are running in this process.
var calls atomic.Int32

// byUser returns the reduction that applies a user's function to each element, or nil if f is nil. The
// function runs on a separate goroutine. A step of a collective operation runs on the goroutine that
// completes its messages, perhaps another rank's, and runtime.Goexit in the function would end it.
func byUser[T any](f func(a, b T) T) reduction {
	if f == nil {
		return nil
	}
	return func(dst, left, right []byte) { callUser(func() { each(f)(dst, left, right) }) }
}

// callUser calls the function of a reduction on a separate goroutine, which the function may end by
// runtime.Goexit. If the function throws, callUser panics with the same value. The goroutine is a
// coroutine, because a switch by the scheduler takes longer than most functions.
func callUser(apply func()) {
	err := ErrGoexit
	calls.Add(1)
	next, stop := iter.Pull(func(yield func(struct{}) bool) { userGoroutine(apply, &err, yield) })
	_, more := next()
	calls.Add(-1)
	if more && !lockedToThread() { // stopping it would end this goroutine by Goexit too; a locked one is left as it is
		go stop()
	}
	switch err := err.(type) {
	case nil:
	case *future.Panicked:
		panic(err)
	default:
		panic(future.Thrown{Err: err})
	}
}

// lockedToThread says whether runtime.LockOSThread has bound this goroutine to its thread. Only this
// goroutine may then switch to its coroutines.
func lockedToThread() bool {
	header := make([]byte, 100)
	header = header[:runtime.Stack(header, false)]
	line, _, _ := bytes.Cut(header, []byte("\n"))
	return bytes.Contains(line, []byte("locked to thread"))
}

// callsOf finds userGoroutine on the stack.
//
//go:noinline
func userGoroutine(apply func(), err *error, yield func(struct{}) bool) {
	defer func() {
		if *err == ErrGoexit {
			yield(struct{}{})
		}
	}()
	defer future.Catch(err)
	apply()
	*err = nil
}

const userGoroutineName = ownPackage + "userGoroutine"

// inReduction says whether the caller was called by a reduction's function.
func inReduction() bool { return callsOf(userGoroutineName) > 0 }

// callsOf returns the number of calls of the named function on the stack.
func callsOf(name string) (calls int) {
	pcs := make([]uintptr, 64)
	for skip := 1; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs)
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var frame runtime.Frame
			if frame, more = frames.Next(); frame.Function == name {
				calls++
			}
		}
		if n < len(pcs) {
			return calls
		}
	}
}

// A reentryError ends a reduction, which reports it as an *MPIError.
type reentryError struct{ does, what, comm string }

func (e *reentryError) Error() string {
	return fmt.Sprintf("its function %s %s on %s, expected one that neither waits nor begins a collective operation", e.does, e.what, e.comm)
}
