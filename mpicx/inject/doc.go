// Package inject does to a rank what a fault would, in programs that show or measure how
// they survive. It must never know of package testing: tests have plans of faults, in
// package mpicxtest.
package inject
