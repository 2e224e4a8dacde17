// Package ring has a queue of messages from one process to another in shared memory, and a table of
// offers. It must never know what the messages are, nor wait.
//
// If a process dies, the other sees the messages that were complete.
package ring
