// Package collective has the algorithms of collective operations over point-to-point messages and,
// where ranks share memory, on a board without messages.
//
// An [Algorithm] is one rank's part, step by step: it names the messages that a step exchanges,
// and computes with their contents. An [Exchange] carries out the steps as messages complete,
// on the goroutine that completes them. No goroutine waits. When the communicator's epoch ends,
// all messages of the operation end, and so does the operation. Its buffers are then free.
//
// Buffers are bytes here. This package must never know what the elements are, nor which error
// ended an epoch.
package collective
