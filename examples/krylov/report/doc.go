// Package report shows the results of runs of krylov: as text or as JSON.
//
// It must never know how the runs were made.
package report
