package collective

import "math"

// An Op sets dst to left op right, element by element. Dst may be one of the two. An Op is
// associative. It need not be commutative: operations apply it in the order of ranks, but
// for algorithms that say otherwise, with the same brackets every time, so that
// floating-point results are the same at all ranks and in every run.
type Op func(dst, left, right []byte)

// A Reduction is what the algorithms of reductions work on: a rank's value, and the
// values of its neighbours that it is combined with, one after another.
type Reduction struct {
	// Send is this rank's value, which stays as it is; nil: Acc has it.
	Send []byte
	// Acc is where it is combined, and where the result comes. It may be Send, and may be nil
	// at a rank that has no result.
	Acc []byte
	Op  Op
	// Element is how many bytes an element has: the value may be split between them.
	Element int
	// Ordered says that Op does not commute.
	Ordered bool

	value []byte // Send, or Acc once it has been combined
	tmp   []byte
}

// begin makes the reduction ready, where anything will arrive for that.
func (a *Reduction) begin(x *Exchange, arrives bool) { a.beginSegments(x, arrives, math.MaxInt) }

// beginSegments is begin for at most so many bytes that arrive at a time.
func (a *Reduction) beginSegments(x *Exchange, arrives bool, most int) {
	a.value = a.Send
	if a.Send == nil {
		a.value = a.Acc
	}
	if arrives {
		a.tmp = x.Scratch(min(most, len(a.value)))
		if a.Acc == nil {
			a.Acc = x.Scratch(len(a.value))
		}
	}
}

// combine combines the value with what has arrived from another rank, whose values come
// before or after.
func (a *Reduction) combine(from int, x *Exchange) {
	if from < x.Rank() {
		a.Op(a.Acc, a.tmp, a.value)
	} else {
		a.Op(a.Acc, a.value, a.tmp)
	}
	a.value = a.Acc
}

// len returns the length of the value.
func (a *Reduction) len() int { return max(len(a.Send), len(a.Acc)) }

// segment is how many bytes a chain passes on at a time: whole elements.
func (a *Reduction) segment() int { return max(1, chainSegment/a.Element) * a.Element }

// settle moves the result to Acc, if it has been combined with nothing.
func (a *Reduction) settle() {
	if len(a.value) > 0 && &a.value[0] != &a.Acc[0] {
		copy(a.Acc, a.value)
	}
	a.value = a.Acc
}
