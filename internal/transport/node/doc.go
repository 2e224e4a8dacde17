// Package node is the transport whose ranks are processes. Processes of one machine communicate
// through shared memory. Between machines, a Fabric carries packets. It must never know more than
// package transport does, nor how a fabric works: package mpi has one.
//
// The fabric and the rings only move bytes between two processes, in order. Communicators, epochs
// and matching are in this package. Making a communicator therefore needs no message, an epoch ends
// at once, and nothing in the fabric has to be cancelled. Between processes of one machine, packets
// go through shared memory (see node, and package ring).
//
// A message is a packet: a header that says what it is, and its bytes, if they are few. The header of a
// longer message, and of a synchronous one, is an offer. The process that matches the offer accepts it,
// with a tag. Then the bytes go directly from the sender's buffer to the receiver's, or through a pipe;
// on its own machine the receiver may read them from the sender's memory (see pull). Until an offer is
// accepted, no bytes of the message have been sent. An offer therefore ends with its epoch, or when it
// is cancelled, and its buffer is free.
//
// # Progress
//
// Messages move while a goroutine makes progress. A goroutine that begins a receive first looks into the
// ring of its peer: a message that is there is received at once, and is never copied to the side. One that is
// about to wait looks for about as long as a short message takes. One that waits makes progress, under a lock;
// others that wait at the same time are parked. While everything that it waits for comes through
// memory, it asks the fabric only occasionally, for deaths. It yields its core to other processes of the job
// that need it (see core). If no goroutine waits, a goroutine of the
// package makes progress, so a rank that computes still passes errors on.
//
// # Deaths
//
// Sockets show the ends of this machine's processes (Watched). In a job of
// several machines, or where the program has asked for pings, the processes tell each other of
// deaths, and find machines that have fallen silent: see heart. A process whose program has ended is dead for
// the others once they need it, as if it had been killed, but the fabric doesn't know: see liveness.
package node
