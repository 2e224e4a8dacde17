// Lesson 1: a peer dies, and an operation that needs it returns an error.
//
//	go run -tags ulfm ./examples/ulfm/01-error-returned
//
// The last rank is killed before it sends the messages that the others wait for. No rank hangs, and
// no other rank is killed: the Wait of each returns a typed error that says which rank has died.
// What it teaches:
//
//   - ErrorsReturn asks for errors instead of an end. In MPI the handler to replace is
//     MPI_ERRORS_ARE_FATAL, by MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN).
//   - Starting an operation with a dead process succeeds; its completion reports the error. (ULFM:
//     "non-blocking operations must not return an error about process failures during
//     initialization".)
//   - The error is a *mpicx.ProcFailedError, MPI's class MPI_ERR_PROC_FAILED. It names the dead
//     ranks; later, Failed, MPIX_Comm_get_failed, does so too.
//
// Try next: remove SetErrhandler. Then the first rank to meet the death tells all others, and each
// gets a *mpicx.CommCorruptedError instead.
//
// A lesson must use only the public interface of mpicx.
package main
