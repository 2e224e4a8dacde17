// Lesson 1: a peer dies, and an operation that needs it returns an error.
//
//	go run -tags ulfm ./examples/ulfm/01-error-returned
//
// The last rank is killed before it sends what the others wait for. Nobody hangs,
// and nobody is killed along with it: the Wait of each says so, and by a typed
// error who has died. What is learnt:
//
//   - ErrorsReturn asks for errors instead of an end. In MPI the handler to replace is
//     MPI_ERRORS_ARE_FATAL, by MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN).
//   - Starting an operation with a dead process is no error: its completion is. (ULFM:
//     "non-blocking operations must not return an error about process failures
//     during initialization".)
//   - The error is a *mpicx.ProcFailedError, MPI's class MPI_ERR_PROC_FAILED. It says
//     who; Failed, MPIX_Comm_get_failed, says so later.
//
// Try next: take SetErrhandler away. Then the first rank to meet the death has
// all of them told, and each gets a *mpicx.CommCorruptedError instead.
//
// A lesson must never know more of mpicx than its face.
package main
