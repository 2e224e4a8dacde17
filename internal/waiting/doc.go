// Package waiting is the core of futures: how goroutines wait for an operation, and how
// the party that runs the operation can interrupt their Waits.
//
// A [Cell] is the part of a future that does not depend on the type of its result. A [Keeper] is
// responsible for the Cells of one party, such as a rank. It lends each waiting goroutine a
// [Place], ends Waits, and reports errors of the party in them instead of results. A future embeds
// its Cell as [Hidden], which hides it from users. Packages of this module get it by [Of].
//
// It must never know what the operations and their results are: no values, no ranks, no messages.
package waiting
