// Package detect finds faults in a Krylov solver that nobody has told of: numbers that
// are not finite, memory that has changed, and residuals that are not those of the
// solution.
//
// It must never know ranks, nor what is done about a fault.
package detect
