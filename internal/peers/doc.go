// Package peers tells a process of the ends of other processes of its machine. Each has a Unix socket to each
// other, and the system closes the sockets of a process that ends, for any reason. It must never know what the
// processes do.
//
// A process that is stopped or slow has not ended. What a process has written to shared memory is visible
// before its end is reported: the system closes its files after its last thread has stopped. If it dumps core,
// its end is reported after that.
//
// The connections are close-on-exec, so children do not keep them open.
package peers
