// Lesson 8: insulation.
//
//	go run -tags ulfm ./examples/ulfm/08-insulation
//
// The world is split in two, as a solver and an analysis are, or two terms of a sum. A rank of one
// half is killed. That half repairs itself and continues; the other half is not disturbed. What it
// teaches:
//
//   - An error stays on its communicator and those derived from it. Each part that can live without
//     the others therefore gets its own communicator (MPI_Comm_split), and repairs it.
//   - On the world, which all have in common, deaths would disturb every rank: it has ErrorsReturn,
//     and is not used until all meet again.
//   - At the end all ranks agree there on what they must know: AgreeFailed (proposed for MPI as
//     MPI_Comm_agree_failed) gives all survivors the same set of dead ranks.
//   - Split is collective: a rank that dies before all have their half still disturbs every rank.
//     The Agree after it tells each rank that none is in Split any more.
//
// Try next: leave world as it is, with ErrorsPropagate, and call Barrier on it in each step:
// now the halves are not insulated any more.
//
// A lesson must use only the public interface of mpicx.
package main
