// Package diagnosis asks all ranks of a communicator which operation they are in, over the
// messenger of its error channel. A question goes down the binomial tree of the rank that asks, and
// the answers are merged on their way back. This takes O(log n) steps, works while the program
// hangs, and costs nothing if no rank asks (P6).
//
// It must never know which operations there are, nor what an error is.
//
// A rank that knows of a death asks the children of the dead rank in its place. A stopped process
// withholds the answers of the ranks below it. The rank that asks then asks all ranks that it has
// no answer of directly ([Machine.Insist]).
package diagnosis
