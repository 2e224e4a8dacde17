// Package collective has the algorithms of collective operations over
// point-to-point messages.
//
// An [Algorithm] is one rank's part, round by round: it says which messages a
// round exchanges and computes on what they brought; an [Exchange] carries the
// rounds out as messages complete, on whatever goroutine completes them. No
// goroutine waits, and when the communicator's epoch ends, so does every
// message of the operation, and with them the operation, its buffers free.
//
// Buffers are bytes here. What the elements are, and which error ended an
// epoch, this package must never know.
package collective
