// Mpicxtrace draws what mpicx.WithTimeline has recorded.
//
//	mpicxtrace [-o trace.json] [-svg out.svg] [-job n] [-run n] [-error n] directory
//
// It merges the files of all processes and prints what happened at which rank: for each error a
// table of times, from the fault to the first operation after the repair. With -o it writes
// everything as a trace for https://ui.perfetto.dev and chrome://tracing, with a track for each
// rank. With -svg it draws one error: the first after which the ranks have repaired a communicator
// or restored a checkpoint, the first if there is none, or the one that -error chooses.
//
// A directory that has files of several jobs, or of a process that has called Run several
// times, has several timelines. Mpicxtrace takes the last job, and its last run with an error;
// -job and -run choose others.
//
// # Clocks
//
// Processes of one machine share its clock. Clocks of different machines are aligned by events
// whose order is known: no rank has a verdict before all have joined, and no rank has the
// result of a repair before all have begun it. This limits each clock's offset to a range. The
// middle of the range is used, and half its width is printed as the bound of the error. If
// there are no such events, the clocks are used as they are.
//
// # Exit status
//
//	0  success
//	1  the files can't be read, or the output can't be written
//	2  the arguments are wrong
package main
