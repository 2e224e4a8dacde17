// Package mpi is the transport whose ranks are processes of an MPI job (-tags mpi): a fabric
// for package node. It must never let a type or macro of MPI out of its C shim.
//
// MPI only moves bytes between two processes in order, on a duplicate of MPI_COMM_WORLD.
// Communicators, epochs and matching are package node's, so nothing has to be cancelled: MPI
// can't cancel sends (open-mpi/ompi#9626, pmodels/mpich#5775). MPI moves messages only while it
// is called.
//
// # Deaths
//
// The processes of one machine see each other's ends at once, no matter how they end
// (node.Watched), and tell other machines. Machines that fall silent are found by heartbeats
// (package node). MPI is told of all these deaths (mx_lost). An MPI with ULFM (Open MPI 5,
// --with-ft ulfm) also reports processes that were killed, some 40 ms later. The package needs
// MPI to survive deaths, to say who has died (MPIX_Comm_get_failed, ack_failed), and to agree
// on the beginning and the end (MPIX_Comm_agree, iagree). Revoke, agree and shrink are
// implemented above it, in the same way for all transports. The package has to cope with these
// properties of Open MPI 5.0.7:
//
//   - A receive from MPI_ANY_SOURCE reports a death and stays pending. When a packet comes, the
//     receive may report the death again, with the packet (see mx_retry).
//   - A message that is not sent at once (4 KiB through shared memory) is matched when its
//     header comes. If its sender dies before the rest has come, the receive never ends. Packets
//     are therefore shorter.
//   - A process that has left a collective operation and dies may keep others from leaving it.
//     The start of a job therefore ends with an agreement.
//   - MPI_Finalize hangs after deaths unless async_mpi_finalize is 1 (without it, 4 of 37 jobs of
//     the kill soak hung): mx_start sets it. Communicators are not freed then, because freeing is
//     collective.
//   - Open MPI does not notice that a process exits with a status other than 0, which is how panics
//     end. Its launcher, PRRTE, reports such an exit only if it is configured to count it as an
//     error, and MPI aborts at that report. Its agreements, and MPI_Finalize, would wait forever, so
//     mx_lost gives MPI the event of PMIx that PRRTE sends for other deaths. Tried before: mpirun
//     --continuous and --enable-recovery (nothing changes); leaving without MPI_Finalize (the
//     agreement before it hangs, and without the agreement no process knows which others still need
//     it); Open MPI's own detector (mpi_ft_detector 1: it sees the death after its timeout, has false
//     positives, and must be requested on the command line). Together with mx_lost the detector takes
//     living processes for dead, on two hosts in 1 of 20 jobs: mx_start turns it off.
//   - PRRTE 3.0.8 ends the job when it notices that its daemon on a host is gone (errmgr/dvm), which
//     its TCP keepalive does after eight minutes. No parameter makes it continue. With the keepalive
//     off it does not notice, and mpirun has to be ended from outside.
//   - PRRTE 3.0.8 counts such a process twice among those that have ended, and kills the rest when
//     its count is full, unless state_base_error_non_zero_exit is 0. mpirun's exit status is then
//     always 0: it takes a process's status only while it counts such exits as errors.
//   - MPI_Finalize fails, or warns, if a process dies while others are in it. By then all have agreed
//     that they no longer need each other: the error is reported, and has no other effect.
//   - PMIx maps memory at an address that its server has chosen, and aborts MPI_Init if Go's heap is
//     there (1 of 86 jobs): mx_start chooses the other way, PMIX_MCA_gds=hash.
//   - MPI_Init waits forever for a process that has died. Start ends with its context; the thread in
//     MPI_Init stays there.
//   - A send to a dead process may succeed, fail at once, or fail later. It makes no difference: a
//     process that needs the dead one has a receive that ends.
//
// With -tags native MPI revokes the world, and agrees for it (native.go, docs/mpi.md).
package mpi
