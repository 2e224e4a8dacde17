// Package future has handles to the results of asynchronous operations.
//
// A [Future] is the reading side: Wait, Get and Test say how the operation
// ended, any number of times and from any number of goroutines. A [Promise] is
// the writing side. [WaitAll] and [WaitAny] wait for several.
//
// Must… throw an error: they panic with [Thrown]. What takes it back, such as mpicx's
// Try, does so in its own goroutine only; in any other, [Catch] does.
//
// It must never know what the operations are: no ranks, no messages, no
// communicators.
package future
