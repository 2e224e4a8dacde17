// Package node is the transport whose ranks are processes: what it does on one machine,
// through memory that they share, and, with a Fabric that carries packets between machines,
// beyond it. It must never know more than package transport does, nor what a fabric is made
// of: package mpi has one.
//
// All that the fabric and the rings do is to move bytes between two processes in order;
// communicators, epochs and matching are this package's. So making a communicator needs no
// message, an epoch ends at once, and nothing has to be cancelled. Between processes of one
// machine packets go through memory that these share (see node, and package ring).
//
// A message is a packet: a header that says what it is, and its bytes, if they are
// few. Of a longer one, and of a synchronous one, the header is an offer. Who matches
// it accepts, with a tag; then the bytes go straight from the sender's buffer into the
// receiver's, or through a pipe. So nothing of an offer is anywhere until somebody
// accepts it: it is over when its epoch is, or when it is cancelled, and its buffer free.
//
// # Progress
//
// Messages move while somebody looks for them. A goroutine that waits does, under a
// lock; others that wait then are parked. While all it waits for comes through memory it
// asks the fabric only now and then, for deaths. A goroutine of the package looks while
// nobody does, so that a rank which computes still passes errors on.
//
// # Deaths
//
// The ends of this machine's processes are seen by their sockets (Watched). In a job of
// several machines, or where the program has asked for pings, the processes tell each other of
// deaths, and find machines that have fallen silent: see heart. A process whose program has ended is dead for the others once they
// need it, as if it had been killed, but the fabric doesn't know: see liveness.
package node
