// Package recovery is the loop around a solver: it calls a function until all ranks have
// succeeded in it, and repairs the communicator in between. It knows the public face of
// mpicx alone, and must never know what a program computes.
//
// [Run] puts Guard, TryAll, Replace and Shrink together:
//
//	err := recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
//		…
//	}, recovery.Replace(), recovery.ElseShrink())
//
// # What is the same at all ranks
//
// Before fn is called the ranks of the communicator, survivors and rescues alike, tell each
// other in which attempt they are and what they know. Whatever Run decides by, it decides by
// what all have told: so all are in the same attempt, on the same communicator, with the same
// [Attempt.Cause]. An error or a death meanwhile fails the attempt at all ranks, too.
//
// All ranks return together. Nil says that all have succeeded; what dies or fails later is of
// the next operation. TryAll alone does not give that: if a rank dies while the votes are
// counted, it may return nil at some ranks. So Run ends with Agree, whose result is the same at
// all survivors.
//
// # What becomes of an error
//
//   - An error that fn returns or throws: all get it as the Cause of the next attempt, on the
//     same communicator.
//   - A panic or runtime.Goexit in fn, and a process that dies: the communicator is corrupted.
//     With Replace or Shrink the others go on with a new one. A panicking rank leaves with its
//     own panic. With the black channel, which cannot repair, Run returns the
//     *mpicx.CommCorruptedError.
//   - The end of the context that Run was given: this rank leaves Run with the context's cause
//     at once, and the others lose it, as if it had panicked. It has to leave the program, too:
//     Shrink and Replace of the others wait until it has.
//   - An error of a communicator that Run's is derived from: Run returns it.
//
// # What a program has to do
//
// Communicators made from a corrupted one are corrupted with it. So fn makes those that it
// needs, grids and duplicates, from Attempt.Comm in every attempt, and closes them when it
// succeeds.
//
// A rescue begins at the top of the program, and meets the others in Run. So a program that
// uses Replace has one Run on its world around all that it does together. Before that it does
// nothing collective.
//
// An attempt may end at any moment of the one before, and a recovery inside of fn by an
// error, too. Take what to do next from the Attempt, from the Store, and from what the ranks
// tell each other in this attempt; not from a variable that an earlier attempt has set at some
// ranks.
//
// # Levels
//
// Run may be called inside of fn, on a communicator that is derived from Attempt.Comm. Such an
// inner level handles the errors and deaths of its own communicator, and nobody else is
// disturbed (use case 2 of the paper "A high-level C++ approach to manage local errors,
// asynchrony and faults in an MPI application", section I; use case 1 is a loop on the rank
// itself, and use case 3 the outermost level). It may shrink, but not replace. The error that it
// gives up with, returned by fn, is the outer level's cause; only then do ranks of other
// communicators learn of it. A death that an inner level has survived is met by the outer one
// with the next operation that needs the dead rank: at the end of its attempt, if not before.
package recovery
