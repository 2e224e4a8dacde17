// Lesson 3: an error that only some see, and agreement about it.
//
//	go run -tags ulfm ./examples/ulfm/03-agreement
//
// Rank 0 broadcasts a number, down a tree: to ranks 1 and 2, and rank 2 passes it on
// to rank 3. But rank 2 is killed in the middle of it. Ranks 0 and 1 have done
// their part, and see a success; rank 3 will never have the number, and sees an
// error. If each went on by what it saw, they would part for ever. So they agree,
// and all take the same branch. What is learnt:
//
//   - A collective operation in which somebody dies may succeed at some ranks and
//     fail at others. (ULFM: "in MPI_Bcast, the root process is likely to succeed
//     before a failed process disrupts the operation".)
//   - Agree, MPIX_Comm_agree, is the AND of what the living say, and the same at
//     all of them, whoever dies before or during it. A Barrier or an Allreduce in
//     its place would be one more operation that some see fail, and some not.
//   - Agree reports the dead by a *ProcFailedError, at all ranks alike. Its Flag is
//     what was agreed: they have a common answer, and know that not all gave theirs.
//   - The broadcast needs no Revoke: all ranks are involved, so it ends everywhere
//     by itself. Had we made the tree of Sends and Recvs, a rank below one that
//     gave up would wait for somebody who lives: then Revoke comes first (lesson 5).
//
// Try next: let rank 2 die at another of the points, and rank 0 at each.
//
// A lesson must never know more of mpicx than its face.
package main
