// Lesson 8: insulation.
//
//	go run -tags ulfm ./examples/ulfm/08-insulation
//
// The world is split in two, as a solver and an analysis are, or two terms of a sum. A rank
// of one half is killed. That half repairs itself and goes on; the other half never hears
// of it. What is learnt:
//
//   - An error stays on its communicator and those derived from it. So each part that can
//     live without the others gets a communicator of its own (MPI_Comm_split), and each
//     repairs its own.
//   - On the world, which all have in common, deaths would be everybody's: it has
//     ErrorsReturn, and is left alone until all meet again.
//   - What all must know in the end, they agree on there: AgreeFailed (proposed for MPI as
//     MPI_Comm_agree_failed) gives all survivors the same set of dead ranks.
//   - Split is collective: a rank that dies before all have their half is still everybody's
//     death. The Agree behind it tells each rank that nobody is in Split any more.
//
// Try next: leave world as it is, with ErrorsPropagate, and call Barrier on it in each step:
// now the halves are not insulated any more.
//
// A lesson must never know more of mpicx than its face.
package main
