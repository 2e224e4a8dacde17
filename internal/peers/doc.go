// Package peers tells a process of the ends of other processes of its machine. Each has a Unix socket to each
// other, and the system closes the sockets of a process that ends, for any reason. On Linux the system also marks
// shared memory, before it frees the memory of the process: the end of one with many GiB is seen sooner. It must
// never know what the processes do.
//
// A process that is stopped or slow has not ended. What a thread wrote to shared memory before it ended its process
// is visible when the end is reported. Another thread may still write for some microseconds, until the system has
// stopped it. If the process dumps core, its end is reported after that.
//
// The connections are close-on-exec, so children do not keep them open.
package peers
