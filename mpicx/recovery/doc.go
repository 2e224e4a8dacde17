// Package recovery is the loop around a solver. It calls a function until all ranks have succeeded
// in it, and repairs the communicator in between. It knows only the public interface of mpicx, and
// must never know what a program computes.
//
// [Run] puts Guard, TryAll, Replace and Shrink together:
//
//	err := recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
//		…
//	}, recovery.Replace(), recovery.ElseShrink())
//
// # What is the same at all ranks
//
// Before each attempt all ranks of the communicator, survivors and rescues, exchange what they
// know. Run decides only by that, so all ranks are in the same attempt, on the same communicator,
// with the same [Attempt.Cause]. An error or a death during the exchange makes the attempt fail at
// all ranks, too.
//
// All ranks return from Run together. Nil says that all have succeeded; a later death or error is
// reported by a later operation. TryAll alone does not guarantee that: if a rank dies while its
// votes are counted, TryAll may return nil at some ranks. Run therefore ends with Agree, whose
// result is the same at all survivors.
//
// # What happens after an error
//
//   - If fn returns or throws an error, all ranks get it as the Cause of the next attempt, on
//     the same communicator.
//   - If fn panics or leaves by runtime.Goexit, or a process dies, the communicator is
//     corrupted. With Replace or Shrink the other ranks continue on a new one. A rank that
//     panicked leaves Run with its panic. The black channel cannot repair a communicator: there
//     Run returns the *mpicx.CommCorruptedError.
//   - If the context that Run was given ends, this rank leaves Run at once with the context's
//     cause, and begins no other attempt. The others lose it as if it had panicked. It has to leave
//     the program, too, because Shrink and Replace of the others wait until it has.
//   - An error of a communicator that Run's is derived from ends Run, which returns it.
//
// # What a program has to do
//
// Communicators made from a corrupted one are corrupted with it. Therefore fn makes those that it
// needs, such as grids and duplicates, from Attempt.Comm in every attempt, and closes them when it
// succeeds.
//
// A rescue starts at the beginning of the program and joins the others in Run. A program that uses
// Replace therefore has a single Run on its world, around all that its ranks do together, and does
// nothing collective before it, nor after it: the world stays corrupted once a rank has died, and
// Attempt.Comm is what has been repaired.
//
// An attempt may end at any moment, and so may the recovery at the beginning of fn. Decide what
// to do next by the Attempt, by the Store, and by what the ranks exchange in this attempt. Do
// not decide by a variable that an earlier attempt has set, because it may have set it at some
// ranks only.
//
// # Levels
//
// Run may be called inside fn, on a communicator that is derived from Attempt.Comm. Such an inner
// level handles the errors and deaths of its own communicator, and no other rank is disturbed. (It
// is use case 2 of the paper "A high-level C++ approach to manage local errors, asynchrony and
// faults in an MPI application", section I. Use case 1 is a loop on the rank itself, use case 3
// the outermost level.) An inner level may shrink but not replace. If it gives up, fn returns its
// error, which becomes the Cause of the outer level; only then do ranks of other communicators
// learn of it. A death that an inner level has survived reaches the outer level when an operation
// needs the dead rank, at the latest at the end of its attempt.
package recovery
