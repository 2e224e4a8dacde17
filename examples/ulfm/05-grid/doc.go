// Lesson 5: a grid of communicators, and a death that all of it must hear of.
//
//	go run -tags ulfm ./examples/ulfm/05-grid
//
// Six ranks form a grid of two rows and three columns, each with a communicator of
// its own, and sum in turn along rows and columns. One is killed between the two.
// Only its own row and column are involved in that death: they get the error. But
// the others wait, in rows and columns where nobody is dead, for those who have given
// up. What is learnt:
//
//   - Leaving the common path is like dying to those who stay on it. Who does so
//     revokes (MPIX_Comm_revoke) each communicator in which somebody may wait for it.
//     A Wait there, and all later ones, report ErrRevoked (MPI_ERR_REVOKED).
//   - Revoking a communicator revokes no other: not those that were split off it, nor
//     what it was split from. The news spreads because everybody who gets it does the
//     same: from a row to all columns, and from those to all rows.
//   - When all have left, they meet in Agree on the world, which is not revoked
//     because nobody waits in it; it would work all the same if it were.
//   - Split reports a death to all or to none, as all that makes communicators here.
//     (MPI leaves that to the program: advice to users in section 1.2.1 of ULFM.)
//
// Try next: let revoke do the row alone, then nothing, and see in the test which
// ranks hang in what.
//
// A lesson must never know more of mpicx than its face.
package main
