// Package peers reports to a process when other processes of its machine end. Each process has a
// Unix socket to each other process, and the system closes the sockets of a process that ends, for
// any reason. On Linux the system also marks a word in shared memory, before it frees the memory of
// the process. So the end of a process with many GiB is seen sooner. The package must never know
// what the processes do.
//
// A process that is stopped or slow has not ended. When an end is reported, everything is visible
// that the thread which ended the process wrote to shared memory before. Other threads of the
// process may still write for some microseconds, until the system has stopped them. If the process
// dumps core, its end is reported after that.
//
// The connections are close-on-exec, so children do not keep them open.
package peers
