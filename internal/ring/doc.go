// Package ring has a queue of messages from one process to another that shares memory
// with it, and a pipe for the bytes of long ones. It must never know what the messages
// are, nor wait.
//
// A process that dies does no harm: the other one sees those of its messages that were
// complete.
package ring
