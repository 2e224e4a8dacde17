// Package signature encodes what a message's sender has called as one word, which the message
// carries: the type signature of a message, as MPI calls it, or a whole collective call. The
// ranks of a job run one program, so a receiver can describe a sender's word.
//
// It must never know how a message moves, nor what is done about a mismatch.
package signature
