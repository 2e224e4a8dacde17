// Lesson 6: shrink and continue.
//
//	go run -tags ulfm ./examples/ulfm/06-shrink
//
// All ranks compute the members of a series, each from the previous one; each rank adds up its
// share of the items of a member. One rank is killed. The others make a communicator of the
// survivors, divide its share among them, and continue from the last member that all have. The
// program does this in two ways, with the same result. What it teaches:
//
//   - With ULFM's calls, under ErrorsReturn: a rank that sees an error revokes (MPIX_Comm_revoke),
//     so no rank waits for it. All call Agree (MPIX_Comm_agree), including those that have
//     finished: no rank may return before all know that none is needed any more. If not all have
//     finished, Shrink (MPIX_Comm_shrink) makes a new communicator, in which ranks have other
//     numbers.
//   - Ranks get the error at different members. On the new communicator they first agree where to
//     start: at the last member that all have.
//   - By Guard, under ErrorsPropagate, the default: the first rank to meet the death tells all
//     others, which replaces the revoke, and all get the same *CommCorruptedError, which replaces
//     the agreement. The program shrinks and continues.
//   - More ranks may die, even during the repair, so the program is a loop.
//
// Try next: a fault for each rank but one. Keep only the last member instead of all, and see which
// rank can no longer go back.
//
// A lesson must use only the public interface of mpicx.
package main
