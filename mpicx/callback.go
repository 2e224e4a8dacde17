package mpicx

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
)

// The function of a reduction runs while the goroutine that brought a message waits for
// it. That may be any rank's goroutine. If the function waited for another operation, it
// could wait for that goroutine. So whatever would block in it throws, which ends the
// reduction. What it has other goroutines do cannot be seen.

// calls counts the functions of reductions that are running in this process.
var calls atomic.Int32

// byUser returns the reduction that applies a user's function to each element, or nil if
// f is nil. It runs on a goroutine of its own: a step of a collective operation runs on
// the goroutine that completes its messages, perhaps another rank's, which
// runtime.Goexit would end.
func byUser[T any](f func(a, b T) T) reduction {
	if f == nil {
		return nil
	}
	return func(dst, left, right []byte) { callUser(func() { each(f)(dst, left, right) }) }
}

// callUser calls the function of a reduction on a goroutine of its own, which the
// function may end by runtime.Goexit. Here callUser panics with what it threw. It is a
// coroutine: the scheduler, which takes longer than most functions, has no part in it.
func callUser(apply func()) {
	err := ErrGoexit
	calls.Add(1)
	next, stop := iter.Pull(func(yield func(struct{}) bool) { userGoroutine(apply, &err, yield) })
	_, more := next()
	calls.Add(-1)
	if more && !lockedToThread() { // who stops it ends by Goexit as well; a coroutine of a thread stays
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

// lockedToThread says whether runtime.LockOSThread has bound this goroutine. Only it may switch
// to its coroutines then.
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

// callsOf counts the calls of the function of this name on the stack.
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
