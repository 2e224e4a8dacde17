// Package detect finds silent faults in a Krylov solver: numbers that are not finite, memory that
// has changed, and residuals that do not belong to the solution.
//
// It must never know ranks, or how faults are handled.
package detect
