// Package report shows the results of runs of krylov: as text, as JSON, as a plot.
//
// It must never know how the runs were made.
package report
