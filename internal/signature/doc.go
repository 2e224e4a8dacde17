// Package signature has the words that messages carry so that receivers know what was
// called: the type signature of a message, as MPI calls it, or a whole collective call. The
// ranks of a job run one program, so a receiver can put a sender's word into words.
//
// It must never know how a message moves, nor what is done about a mismatch.
package signature
