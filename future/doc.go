// Package future has handles to the results of asynchronous operations.
//
// A [Future] is the reading side: Wait, Get and Test say how the operation ended, any number of
// times and from any number of goroutines. A [Promise] is the writing side. [WaitAll] and
// [WaitAny] wait for several futures.
//
// MustWait and MustGet throw the error: they panic with [Thrown]. Try of package mpicx turns
// that back into an error in its own goroutine. In any other goroutine [Catch] does.
//
// It must never know what the operations are: no ranks, no messages, no communicators.
package future
