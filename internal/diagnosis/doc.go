// Package diagnosis asks all ranks of a communicator what they are in, over the messenger of
// its error channel: a question goes down the binomial tree of the rank that asks, and
// the answers come up it, merged. So it takes O(log n) steps, works while the program
// hangs, and costs nothing while nobody asks (P6).
//
// It must never know what a rank is in, nor what an error is.
//
// Who knows of a death asks in place of the dead those that the dead would have asked. A
// process that is stopped keeps the answers of those below it: the rank that asks then asks
// everybody of whom it has heard nothing directly ([Machine.Insist]).
package diagnosis
