// Package waiting is the core of futures: how goroutines wait for an operation, and
// how the party that runs it has a say in their Waits.
//
// A [Cell] is the part of a future that does not depend on the type of its result. A
// [Keeper] stands behind the Cells of one party, such as a rank: it lends each
// goroutine a [Place] to wait in, ends Waits, and reports errors of the party in them
// in place of results. A future embeds its Cell as [Hidden], so that users do not see it;
// [Of] is how the packages of this module reach it.
//
// It must never know what the operations and their results are: no values, no ranks,
// no messages.
package waiting
