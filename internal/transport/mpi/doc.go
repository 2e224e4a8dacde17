// Package mpi is the transport whose ranks are processes of an MPI job (-tags mpi): the
// fabric of package node. It must never let a type or macro of MPI out of its C shim.
//
// MPI only moves bytes between two processes in order, on a duplicate of
// MPI_COMM_WORLD; communicators, epochs and matching are package node's. So nothing has to
// be cancelled, which MPI can't do with sends (open-mpi/ompi#9626, pmodels/mpich#5775). It
// moves messages while it is called.
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
//     leaving it: a job's start ends with an agreement.
//   - MPI_Finalize hangs after deaths unless async_mpi_finalize is 1: mx_start sets it.
//     Communicators are not freed then, which is collective.
//   - What is sent to the dead may succeed, fail at once, or fail later. It is all the
//     same: who needs the dead has a receive that ends.
package mpi
