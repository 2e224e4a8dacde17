package transport

import (
	"fmt"
	"math/bits"
	"strings"
)

// An Epoch distinguishes messages before an error from messages after it. It stands for a
// vector of counts: the number of errors resolved on a communicator and, separately, on each
// communicator that it is derived from (D1). Two ranks may learn of errors of parent and
// child in different orders, and a single sum would not distinguish the orders.
//
// The lower half has each count modulo 4, in two bits, the root's in the lowest. The upper
// half has the sum of all counts. Together they are as good as the vector, because live ranks
// are close to each other: see Stale. An epoch repeats only after 2³² errors.
type Epoch uint64

// Generations is the number of communicators whose errors an epoch counts: one without
// parent, of generation 0, and derived ones up to generation Generations-1.
const Generations = 16

// GenerationError says that a communicator has too many ancestors: an Epoch could not
// distinguish its errors from theirs.
type GenerationError struct{ Generation int }

func (e *GenerationError) Error() string {
	return fmt.Sprintf("communicator of generation %d, expected 0 to %d: one may be derived from another that is derived, and so on, %d times at most",
		e.Generation, Generations-1, Generations-1)
}

// Next returns the epoch after an error of the communicator of the given generation (0: no
// parent), for that communicator and all derived from it. It panics with a *GenerationError
// if an epoch has no such generation.
func (e Epoch) Next(generation int) Epoch {
	if generation < 0 || generation >= Generations {
		panic(&GenerationError{generation})
	}
	shift := 2 * generation
	count := e >> shift & 3
	return e - count<<shift + (count+1)&3<<shift + 1<<32
}

// Errors returns the number of all errors that it counts.
func (e Epoch) Errors() uint32 { return uint32(e >> 32) }

// Missing returns the number of errors of the communicator of a generation after e and up to
// f. It is at most 3.
func (e Epoch) Missing(f Epoch, generation int) int {
	return int((f>>(2*generation) - e>>(2*generation)) & 3)
}

// IsPast says whether all ranks have left epoch e, as a rank in the later epoch f knows: two errors
// of one communicator have come after e. A rank that resolves the second has left e by the first.
func (e Epoch) IsPast(f Epoch) bool { return f.ahead(e)&highBits != 0 }

// Stale says whether messages of epoch e can never be received in epoch f or after it: some
// error that f counts came after e.
//
// Let d be the vector of f minus the vector of e. By definition a message is stale if d has a
// positive component. No component is less than -3: resolving an error needs all ranks, so no
// rank is more than one error of a communicator behind another, and while a message is under
// way its receiver only advances. The two bits therefore determine the components that are not
// positive: let a, from 0 to 3, be e's count minus f's, modulo 4. Then d ≥ -a in each component,
// with equality exactly where d is not positive. Hence the sum of d, known from the upper
// halves, is at least the sum of all -a, with equality exactly if the message is not stale. This
// holds for messages that are up to 2³¹ errors old.
//
// If a rank is further behind nevertheless, messages to it that are ahead in every component
// are not stale either, because their sum is ahead by more.
func (e Epoch) Stale(f Epoch) bool {
	a := e.ahead(f)
	return int32(e>>32)-int32(f>>32) < int32(bits.OnesCount32(a&^highBits)+2*bits.OnesCount32(a&highBits))
}

const highBits = 0xaaaaaaaa // of the counts

// ahead returns e's counts minus f's, each modulo 4.
func (e Epoch) ahead(f Epoch) uint32 {
	x, y := uint32(e), uint32(f)
	// With the high bit of each pair set in x and clear in y, no borrow leaves a pair. The last
	// operation corrects the high bits.
	return ((x | highBits) - (y &^ highBits)) ^ ((x ^ ^y) & highBits)
}

// String returns the number of errors, and, if not all are the root's, each count
// modulo 4, the root's first.
func (e Epoch) String() string {
	text := fmt.Sprint(e.Errors())
	if uint32(e) < 4 {
		return text
	}
	var counts []string
	for c := uint32(e); c != 0; c >>= 2 {
		counts = append(counts, fmt.Sprint(c&3))
	}
	return text + " (" + strings.Join(counts, ".") + ")"
}
