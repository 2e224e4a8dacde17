// Lesson 6: shrink and go on.
//
//	go run -tags ulfm ./examples/ulfm/06-shrink
//
// All ranks compute the members of a series, each from the one before; each rank adds
// up its share of the items of a member. One is killed on the way. The others make a
// communicator of the living, deal its share out among them, and go on where all of
// them are. It is done twice, and comes to the same. What is learnt:
//
//   - By hand, under ErrorsReturn: who sees an error revokes (MPIX_Comm_revoke), so
//     that nobody waits for it. All come to Agree (MPIX_Comm_agree), those too that
//     have finished: nobody may go home before all know that nobody is needed any
//     more. If not all have finished, Shrink (MPIX_Comm_shrink) makes a new
//     communicator, in which ranks have other numbers.
//   - Errors come to ranks at different members. On the new communicator they first
//     agree where to start: at the least that all have.
//   - By Guard, under ErrorsPropagate, the default: the first to meet the death has all
//     told, which is the revoke, and all get the same *CommCorruptedError, which is the
//     agreement. The program shrinks and goes on.
//   - There may be more deaths, in the repair too: so it is a loop.
//
// Try next: a fault for each rank but one. Keep the last member only instead of all,
// and see which rank can't go back any more.
//
// A lesson must never know more of mpicx than its face.
package main
