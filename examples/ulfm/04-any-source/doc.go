// Lesson 4: receiving from AnySource when a rank dies.
//
//	go run -tags ulfm ./examples/ulfm/04-any-source
//
// A bag of tasks: a manager, rank 0, gives tasks to workers, and receives answers from any of them.
// Two workers are killed while they have a task. What it teaches:
//
//   - A receive from AnySource can't know whether the dead rank would have been the sender. It
//     reports ErrProcFailedPending (MPI_ERR_PROC_FAILED_PENDING) and stays pending: wait for the
//     same future again.
//   - Failed (MPIX_Comm_get_failed) lists the dead. AckFailed (MPIX_Comm_ack_failed) acknowledges
//     the first n: receives from AnySource, this one and later ones, then continue. A death in
//     between is not among the n, so it can't be missed.
//   - The tasks of the dead are given to other workers. No other recovery is needed: no revoke, no
//     agreement, and the other workers are not told.
//
// Try next: kill all workers; then kill the manager, and see lesson 1's error at the workers.
//
// A lesson must use only the public interface of mpicx.
package main
