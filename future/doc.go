// Package future has futures: results of operations that go on by themselves.
//
// A [Future] is the reading side: Wait, Get and Test say how the operation
// ended, any number of times and from any number of goroutines. A [Promise] is
// the writing side. A [Keeper] may stand behind the futures of one party and
// have a word in every Wait: that is how package mpicx lets errors of other
// ranks out of them.
//
// It must never know what the operations are: no ranks, no messages, no
// communicators.
package future
