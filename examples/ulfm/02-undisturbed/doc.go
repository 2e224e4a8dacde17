// Lesson 2: a dead peer disturbs nobody who does not need it.
//
//	go run -tags ulfm ./examples/ulfm/02-undisturbed
//
// Ranks 0 and 1, 2 and 3, and so on play ping-pong. One of them is killed after three
// rounds. Its partner gets an error in the fourth; all other pairs play to the end, on
// the same communicator, and no error reaches them. What it teaches:
//
//   - An operation that does not involve a dead process is undisturbed. Two ranks are
//     involved in a message, all in a collective operation. (ULFM: "an MPI call that
//     does not involve the failed process will complete normally".)
//   - Errors are local knowledge: no rank is told automatically that the communicator has a dead
//     member. If all have to know, the program has to tell them, which is the subject of lesson 3.
//
// Try next: end the game with a Barrier. All ranks are involved in it, so all get the error.
//
// A lesson must use only the public interface of mpicx.
package main
