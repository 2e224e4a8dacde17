// Lesson 5: a grid of communicators, and a death that all its ranks must learn of.
//
//	go run -tags ulfm ./examples/ulfm/05-grid
//
// Six ranks form a grid of two rows and three columns, each with its own communicator, and sum in
// turn along rows and columns. One is killed between the two. Only its own row and column are
// involved in that death: they get the error. But the other ranks wait, in rows and columns without
// a dead rank, for those that have given up. What it teaches:
//
//   - To the ranks that stay on the common path, a rank that leaves it is like a dead one. It
//     therefore revokes (MPIX_Comm_revoke) each communicator in which another rank may wait for it.
//     A Wait there, and all later ones, report ErrRevoked (MPI_ERR_REVOKED).
//   - Revoking a communicator revokes no other: neither those split from it nor the one it was
//     split from. The news spreads because each rank that gets it does the same: from a row to all
//     columns, and from those to all rows.
//   - When all have left, they meet in Agree on the world, which is not revoked, because no rank
//     waits in it; Agree would also work if it were.
//   - Split reports a death to all ranks or to none, as does every operation that makes
//     communicators. (MPI leaves that to the program: advice to users in section 1.2.1 of ULFM.)
//
// Try next: make revoke revoke only the row, then nothing, and see in the test which ranks hang in
// which operation.
//
// A lesson must use only the public interface of mpicx.
package main
