// Package inject kills ranks on purpose, in programs that show or measure how they survive faults.
// Tests have plans of faults, in package mpicxtest.
//
// It must never know of package testing.
package inject
