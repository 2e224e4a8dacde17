// Package observe shows people what a rank does: its events, in a log, an execution trace and a
// timeline; the operations that it is in; and the mistakes that its program has not noticed. It
// must never know package mpicx's communicators, nor how a timeline is drawn.
//
// A process has one timeline in a directory, a file. Its first line is a [Head], each other line is
// an [Event], as JSON. A line is written by one write(2) when its event happens, and nothing is
// kept in the process. A SIGKILL can therefore cut off only the last line. (A machine that loses
// power may lose what its kernel has not yet written to the disk.)
//
// Events of errors are kept for good. Of the operations, the first 64 KiB after each such event
// and the last megabyte before it are kept. In between, the line of an operation may replace an
// older one, so a file stays small no matter how long the program runs. Its lines are not
// always in the order of their times. What is left of a line that was partly overwritten is not
// JSON: a reader skips it.
package observe
