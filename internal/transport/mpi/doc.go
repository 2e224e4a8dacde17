// Package mpi is the transport whose ranks are processes of an MPI job (-tags mpi).
// It must never know more than package transport does, nor let a type or macro of
// MPI out of its C shim.
//
// MPI only moves bytes between two processes in order, on one duplicate of
// MPI_COMM_WORLD; communicators, epochs and matching are this package's. So making a
// communicator needs no message, an epoch ends at once, and nothing has to be
// cancelled, which MPI can't do with sends (open-mpi/ompi#9626, pmodels/mpich#5775).
//
// A message is a packet: a head that says what it is, and its bytes, if they are
// few. Of a longer one, and of a synchronous one, the head is an offer. Who matches
// it posts the receive and accepts, with a tag of MPI's; then the bytes go straight
// from the sender's buffer into the receiver's. So MPI has nothing of an offer that
// nobody has accepted: it is over when its epoch is, and its buffer free.
//
// # Progress
//
// MPI moves messages while it is called. A goroutine that waits calls it, under a
// lock; so does a goroutine of the package, now and then, so that a rank which
// computes still passes errors on.
package mpi
