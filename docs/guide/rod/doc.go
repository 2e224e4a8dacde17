// Package rod is the solver of the guide's programs: it computes how heat spreads in a rod whose
// cells are divided among ranks, as chapter 1 does. It must never know how a program recovers.
package rod
