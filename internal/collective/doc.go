// Package collective has the algorithms of collective operations over
// point-to-point messages.
//
// An [Algorithm] is one rank's part, step by step: it says which messages a step
// exchanges, and computes on what they brought. An [Exchange] carries out the steps as
// messages complete, on the goroutine that completes them. No goroutine waits. When the
// communicator's epoch ends, every message of the operation ends, and with them the
// operation; its buffers are free.
//
// Buffers are bytes here. What the elements are, and which error ended an
// epoch, this package must never know.
package collective
