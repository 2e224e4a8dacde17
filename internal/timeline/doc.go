// Package timeline has the files in which processes record the operations, errors and repairs of their ranks:
// the format, a writer and a reader. It must never know communicators, or how a timeline is drawn.
//
// A process has one file in a directory. Its first line is a [Head], each other one a [Line], as JSON.
// A line is written by one write(2) when its event happens, and nothing is kept in the process:
// a SIGKILL can cut the last line off, no more. (A machine that loses power may lose what its kernel
// has not put on the disk.)
//
// Events of errors are kept for good. Of operations the first 64 KiB after each of them and the last
// megabyte before it are: in between, the line of an operation may take the place of an older one. So a
// file stays small however long the program runs. Its lines are not always in the order of their
// times, and what is left of a line that another has half overwritten is no JSON: a reader skips it.
package timeline
