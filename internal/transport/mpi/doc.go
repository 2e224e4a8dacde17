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
// The processes of one machine see each other's ends at once, whatever they end by
// (node.Watched), and tell those of others; machines that fall silent are found by heartbeats
// (package node). MPI is told of all that (mx_lost). With an MPI that has ULFM (Open MPI 5,
// --with-ft ulfm) processes that are killed are told of some 40 ms later as well. What the
// package asks of it is that it lives on, who has died (MPIX_Comm_get_failed, ack_failed), and
// to agree on the beginning and the end (MPIX_Comm_agree, iagree); revoke, agree and shrink
// are above, and the same for all transports. Facts about Open MPI 5.0.7 that it has to live
// with:
//
//   - A receive from anybody reports a death and stays pending; when a packet comes,
//     it may report the same once more, with the packet (see mx_retry).
//   - A message that is not sent at once (4 KiB through shared memory) is matched when its
//     header comes; if its sender dies before the rest, the receive never ends. So packets
//     are shorter.
//   - A process that has left a collective operation, and dies, may keep others from
//     leaving it: a job's start ends with an agreement.
//   - MPI_Finalize hangs after deaths unless async_mpi_finalize is 1 (without it, 4 of 37
//     jobs of the kill soak): mx_start sets it. Communicators are not freed then, which is
//     collective.
//   - It hears nothing of a process that exits with a status that is not 0, which is how
//     panics end: its launcher, PRRTE, notifies of such an exit only if it is to take it for an
//     error, and MPI aborts at that notice. So its agreements, and MPI_Finalize, would wait for
//     ever: mx_lost gives MPI the event of PMIx that it takes from PRRTE for other deaths. Tried
//     before: mpirun --continuous and --enable-recovery (nothing changes), to leave without
//     MPI_Finalize (the agreement before it hangs, and without that one nobody knows who may
//     still need whom), its own detector (mpi_ft_detector 1: it sees the death after its
//     timeout, has false positives, and has to be asked for on the command line). With that
//     and mx_lost it takes living processes for dead, on two hosts in 1 of 20 jobs: mx_start
//     turns it off.
//   - PRRTE 3.0.8 ends the job when it notices that its daemon on a host is gone (errmgr/dvm),
//     which its TCP keepalive does after eight minutes; no parameter has it go on. When the
//     keepalive is off it does not notice, and mpirun has to be ended by somebody else.
//   - PRRTE 3.0.8 counts such a process twice among those that have ended, and kills the rest
//     when its count is full, unless state_base_error_non_zero_exit is 0. Then mpirun's exit
//     status is always 0: it takes that of a process only while it counts like this.
//   - MPI_Finalize fails, or warns, if a process dies while others are in it. By then all have
//     agreed that they need each other no more: its error is reported, and nothing else.
//   - PMIx maps memory at an address that its server has chosen, and aborts MPI_Init if Go's
//     heap is there (1 of 86 jobs): mx_start chooses the other way, PMIX_MCA_gds=hash.
//   - MPI_Init waits for ever for a process that has died. Start ends with its context; the
//     thread that is in MPI_Init stays there.
//   - What is sent to the dead may succeed, fail at once, or fail later. It is all the
//     same: who needs the dead has a receive that ends.
//
// With -tags native the world's errors are revoked and agreed on by MPI (native.go,
// docs/mpi.md).
package mpi
