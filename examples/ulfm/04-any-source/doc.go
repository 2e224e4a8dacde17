// Lesson 4: receiving from anybody, when somebody dies.
//
//	go run -tags ulfm ./examples/ulfm/04-any-source
//
// A bag of tasks: a manager, rank 0, gives them to workers, and takes each answer from whoever
// has one. Two workers are killed with a task in hand. What is learnt:
//
//   - A receive from AnySource can't know whether the dead would have been the
//     sender. So it reports ErrProcFailedPending (MPI_ERR_PROC_FAILED_PENDING) and
//     stays where it is: it is this very future that is waited for again.
//   - Failed (MPIX_Comm_get_failed) says who. AckFailed (MPIX_Comm_ack_failed) says
//     "I know of the first n": receives from AnySource, this one and later ones, go
//     on. A death in between is not among the n, so it can't be missed.
//   - What the dead had in hand is given to others. That is all the recovery there is:
//     no revoke, no agreement, and the other workers never hear of it.
//
// Try next: kill all workers; then kill the manager, which is an error like in
// lesson 1 to them.
//
// A lesson must never know more of mpicx than its face.
package main
