// Package peers tells a process of the ends of others on its machine: each holds a
// Unix socket to each, and the system closes those of a process that ends, whatever has
// ended it. It must never know what the processes do.
//
// A process that is stopped, or slow, has not ended. What a process has written into
// memory that it shares is there before its end is told: the system closes its files
// after its last thread has stopped. One that dumps core is told of after that.
//
// The connections are close-on-exec, so children do not keep them open.
package peers
