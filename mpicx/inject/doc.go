// Package inject does to a rank what a fault would do, in programs that show or measure how
// they survive. Tests have plans of faults, in package mpicxtest.
//
// It must never know of package testing.
package inject
