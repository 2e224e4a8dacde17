// Mpicxtrace draws what mpicx.WithTimeline has recorded.
//
//	mpicxtrace [-o trace.json] [-svg out.svg] [-job n] [-run n] [-error n] directory
//
// It merges the files of all processes and prints what happened at which rank: for each error a table of
// times, from the fault to the first operation after the repair. -o writes it all as a trace that
// https://ui.perfetto.dev and chrome://tracing open, with a track for each rank; -svg draws one
// error, the first if -error does not say another.
//
// A directory that has several jobs, or a process that has called Run several times, has several
// timelines. The last job is taken, and of that the last run with an error; -job and -run say
// others.
//
// # Clocks
//
// Processes of one machine share its clock. Between machines the clocks are aligned by what must come before
// what: no rank has a verdict before all have joined, and no rank the result of a repair before all
// have begun it. That gives each clock's offset a range; its middle is taken, and its half is
// printed as the bound of the error. Without any such event the clocks are taken as they are.
//
// # Exit status
//
//	0  it is done
//	1  the files can't be read, or the output not be written
//	2  the arguments make no sense
package main
