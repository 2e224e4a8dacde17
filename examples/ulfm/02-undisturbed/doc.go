// Lesson 2: a dead peer disturbs nobody who does not need it.
//
//	go run -tags ulfm ./examples/ulfm/02-undisturbed
//
// Ranks 0 and 1, 2 and 3, and so on play ping-pong. One of them is killed after
// three rounds. Its partner gets an error in the fourth; all other pairs play to
// the end, on the same communicator, and no error reaches them. What is learnt:
//
//   - An operation that does not involve a dead process goes on undisturbed. Two
//     ranks are involved in a message, all in a collective operation. (ULFM:
//     "an MPI call that does not involve the failed process will complete
//     normally".)
//   - So errors are local knowledge. That the communicator has a dead member is
//     told to nobody by itself: who needs all to know has to tell them, which is
//     what lesson 3 is about.
//
// Try next: end the game by a Barrier. All are involved in that, so all get the error.
//
// A lesson must never know more of mpicx than its face.
package main
