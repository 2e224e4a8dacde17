// Package node is the transport whose ranks are processes. Processes of one machine communicate
// through shared memory. Between machines, a Fabric carries packets. The package must never know
// more of its users than package transport does, nor how a fabric works. Package mpi has a fabric.
//
// The fabric, and the rings in shared memory (see node, and package ring), only move bytes between
// two processes, in order. Communicators, epochs and matching are in this package. Making a
// communicator therefore needs no message, an epoch ends at once, and nothing in the fabric has to
// be cancelled.
//
// A short message is one packet: a header, and its bytes (eager). For a longer message, and for a
// synchronous one, the packet is an offer, without the bytes (rendezvous). The process that matches
// the offer accepts it, with a tag for the bytes. Then they go directly from the sender's buffer to
// the receiver's, or in further packets. On the same machine, the receiver may read them from the
// sender's memory (see pull). Until an offer is accepted, no bytes of the message have been sent.
// When the epoch ends or the send is cancelled, the offer therefore ends, and its buffer is free.
//
// # Progress
//
// Messages move while a goroutine makes progress:
//
//   - A goroutine that begins a receive first takes packets from the ring of its peer. A message
//     that is there is received at once, without another copy.
//   - A goroutine that is about to wait makes progress for about as long as a short message takes.
//   - Of the goroutines that wait, one makes progress, and the others are parked. While everything
//     that it waits for comes through shared memory, it polls the fabric only occasionally, for
//     deaths. It yields its core to other processes of the job that need it (see core).
//   - A goroutine that has made progress in vain for a while is parked too. A goroutine of the
//     package sleeps for it. A sender of a packet through shared memory wakes it, as does a death
//     (see package bell). What comes from other machines does not: for that it looks at the fabric
//     from time to time, up to a millisecond apart.
//   - If no goroutine waits, that goroutine makes progress from time to time. So a rank that
//     computes still passes errors on.
//
// # Deaths
//
// Sockets show when a process of this machine ends (see Watched). In a job of several machines, or
// where the program has asked for pings, the processes also tell each other of deaths, and detect
// machines that have fallen silent (see heart). A process whose program has ended counts as dead,
// for the communicators of that program, once another process needs it. The fabric knows nothing of
// that (see liveness).
package node
