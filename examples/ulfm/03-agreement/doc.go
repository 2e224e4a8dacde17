// Lesson 3: an error that only some ranks see, and agreement about it.
//
//	go run -tags ulfm ./examples/ulfm/03-agreement
//
// Rank 0 broadcasts a table, down a tree: to ranks 1 and 2, and rank 2 passes it on to rank 3. But
// rank 2 is killed in the middle. Ranks 0 and 1 have done their part, and see a success; rank 3
// will never get the table, and sees an error. If each rank acted on what it saw, they would
// diverge for good. They agree instead, and all take the same branch. What it teaches:
//
//   - A collective operation in which a rank dies may succeed at some ranks and fail at others.
//     (ULFM: "in MPI_Bcast, the root process is likely to succeed before a failed process disrupts
//     the operation".)
//   - Agree, MPIX_Comm_agree, returns the AND of the survivors' flags, the same at all of them, no
//     matter which ranks die before or during it. A Barrier or an Allreduce instead would be
//     another operation that fails at some ranks only.
//   - Agree reports the dead by a *ProcFailedError, at all ranks alike. Its Flag is what was
//     agreed: the ranks have a common result, and know that not all contributed.
//   - The broadcast needs no Revoke: all ranks are involved, so it ends everywhere by itself. With
//     a tree of Sends and Recvs, a rank below one that gave up would wait for a live rank: then
//     Revoke has to come first (lesson 5).
//
// Try next: let rank 2 die at another of the points, and rank 0 at each.
//
// A lesson must use only the public interface of mpicx.
package main
