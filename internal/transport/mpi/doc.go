// Package mpi is the transport whose ranks are processes of an MPI job (-tags mpi).
// It must never know more than package transport does, nor let a type or macro of
// MPI out of its C shim.
//
// MPI itself is one interface, library, and one implementation of it, shim, which is all
// that needs the tag and cgo. The rest is Go, is built everywhere, and is tested with a
// library in memory.
//
// MPI only moves bytes between two processes in order, on a duplicate of
// MPI_COMM_WORLD; communicators, epochs and matching are this package's. So making a
// communicator needs no message, an epoch ends at once, and nothing has to be
// cancelled, which MPI can't do with sends (open-mpi/ompi#9626, pmodels/mpich#5775).
// Between processes of one machine packets do not even need MPI: they go through memory
// that these share (see node, and package ring).
//
// A message is a packet: a header that says what it is, and its bytes, if they are
// few. Of a longer one, and of a synchronous one, the header is an offer. Who matches
// it accepts, with a tag; then the bytes go straight from the sender's buffer into the
// receiver's, or through a pipe. So nothing of an offer is anywhere until somebody
// accepts it: it is over when its epoch is, or when it is cancelled, and its buffer free.
//
// # Progress
//
// MPI moves messages while it is called. A goroutine that waits calls it, under a
// lock; others that wait then are parked. While all it waits for comes through memory it
// calls MPI only now and then, for deaths. A goroutine of the package calls it while
// nobody does, so that a rank which computes still passes errors on.
//
// # Deaths
//
// With an MPI that has ULFM (Open MPI 5, --with-ft ulfm) processes that are killed are
// told of. What the package asks of it is that it lives on, who has died
// (MPIX_Comm_get_failed, ack_failed), and to agree on the beginning and the end
// (MPIX_Comm_agree, iagree); revoke, agree and shrink are above, and the same for all
// transports. Facts about Open MPI 5.0.7 that it has to live with:
//
//   - A receive from anybody reports a death and stays pending; when a packet comes,
//     it may report the same once more, with the packet (see mx_retry).
//   - A message that is not sent at once (4 KiB through shared memory) is matched when its
//     header comes; if its sender dies before the rest, the receive never ends. So packets
//     are shorter.
//   - A process that has left a collective operation, and dies, may keep others from
//     leaving it: Start ends with an agreement.
//   - MPI_Finalize hangs after deaths unless async_mpi_finalize is 1: mx_start sets it.
//     Communicators are not freed then, which is collective.
//   - What is sent to the dead may succeed, fail at once, or fail later. It is all the
//     same: who needs the dead has a receive that ends.
//
// A process whose program has ended is dead for the others once they need it, as if it
// had been killed, but MPI doesn't know: see liveness.
package mpi
