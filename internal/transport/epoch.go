package transport

import (
	"fmt"
	"math/bits"
	"strings"
)

// An Epoch tells the messages before an error from those after it. It stands for a
// vector of counts: of the errors resolved on a communicator and, each on its own, on
// those it is derived from (design rule D1). Two ranks may learn of errors of parent
// and child in different orders, so one sum would not tell the orders apart.
//
// The lower half holds each count modulo 4, in two bits, the root's in the lowest; the
// upper half holds the sum of them all. Together they are as good as the vector, because
// live ranks are close to each other: see Stale. An epoch comes again only after 2³²
// errors.
type Epoch uint64

// Generations is how many communicators an epoch counts the errors of: one without
// parent, of generation 0, and its descendants up to generation Generations-1.
const Generations = 16

// GenerationError says that a communicator has too many ancestors: no Epoch would tell
// its errors from theirs.
type GenerationError struct{ Generation int }

func (e *GenerationError) Error() string {
	return fmt.Sprintf("communicator of generation %d, expected 0 to %d: one may be derived from another that is derived, and so on, %d times at most",
		e.Generation, Generations-1, Generations-1)
}

// Next is the epoch after an error of the communicator of the given generation
// (0: no parent), for that communicator and all derived from it. It panics with a
// *GenerationError if there can be none of that generation.
func (e Epoch) Next(generation int) Epoch {
	if generation < 0 || generation >= Generations {
		panic(&GenerationError{generation})
	}
	shift := 2 * generation
	count := e >> shift & 3
	return e - count<<shift + (count+1)&3<<shift + 1<<32
}

// Missing is how many errors of the communicator of a generation came after e and up to
// f, at most 3.
func (e Epoch) Missing(f Epoch, generation int) int {
	return int((f>>(2*generation) - e>>(2*generation)) & 3)
}

// Stale says whether messages of epoch e can never be received in epoch f or after
// it: some error that f knows came after e.
//
// Let d be the vector of f less that of e. A message is stale if d has a positive
// component, by definition. None is less than -3: resolving an error needs all, so no
// rank is more than one error of a communicator behind another, and receivers only
// move on while a message is under way. So those components that are not positive are
// known from the two bits: let a, from 0 to 3, be e's count less f's, modulo 4. Then
// d ≥ -a everywhere, with equality just where d is not positive. Hence the sum of d,
// which the upper halves tell, is at least that of all -a, and equal just if the
// message is not stale. However old it is, it is told apart, up to 2³¹ errors.
//
// Should a rank be so far behind after all, messages to it which are ahead in every
// component are not stale either: their sum is ahead by more.
func (e Epoch) Stale(f Epoch) bool {
	return int32(e>>32)-int32(f>>32) < e.ahead(f)
}

// ahead is the sum of e's counts less f's, each modulo 4.
func (e Epoch) ahead(f Epoch) int32 {
	const high, low = 0xaaaaaaaa, 0x55555555 // bits of the counts
	x, y := uint32(e), uint32(f)
	// No borrow leaves two bits: x's high one is set and y's is not. What they should
	// be is put in afterwards.
	d := ((x | high) - (y &^ high)) ^ ((x ^ ^y) & high)
	return int32(bits.OnesCount32(d&low) + 2*bits.OnesCount32(d&high))
}

// String returns the number of errors, and, if not all are the root's, each count
// modulo 4, the root's first.
func (e Epoch) String() string {
	text := fmt.Sprint(uint32(e >> 32))
	if uint32(e) < 4 {
		return text
	}
	var counts []string
	for c := uint32(e); c != 0; c >>= 2 {
		counts = append(counts, fmt.Sprint(c&3))
	}
	return text + " (" + strings.Join(counts, ".") + ")"
}
