// Package guide is the guide for people who have a solver and ranks: a text a chapter, and the
// programs in it. Its test runs the programs and compares the texts with what they print.
// It must never have code of its own, and its programs import nothing internal.
package guide
