// Package report tells how runs of krylov went: as text, as JSON, as a plot.
//
// It must never know how they were made.
package report
