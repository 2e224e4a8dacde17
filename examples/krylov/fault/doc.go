// Package fault contains the faults of krylov: which fault strikes which rank, when, and its
// effect.
//
// It must never know how faults are handled.
package fault
