package collective

import "math"

// An Op sets dst to left op right, element by element. Dst may be one of the two. An Op is
// associative. It need not be commutative: operations apply it in the order of ranks, except
// for algorithms that say otherwise. They group the values in the same way every time, so
// floating-point results are the same at all ranks and in every run.
type Op func(dst, left, right []byte)

// A Reduction is the state of a reduction at one rank, for all algorithms: the rank's value,
// which is combined with the values of other ranks one after another.
type Reduction struct {
	// Send is this rank's value, and stays unchanged; nil: the value is in Acc.
	Send []byte
	// Acc is where values are combined and where the result is stored. It may be Send. It may
	// be nil at a rank that has no result.
	Acc []byte
	Op  Op
	// Element is the length of an element in bytes. The value may be split between elements.
	Element int
	// Ordered says that Op does not commute.
	Ordered bool

	value []byte // Send, or Acc once it has been combined
	tmp   []byte
}

// begin prepares the reduction. Arrives says whether this rank will receive values.
func (a *Reduction) begin(x *Exchange, arrives bool) { a.beginSegments(x, arrives, math.MaxInt) }

// beginSegments is begin for a rank that receives at most this many bytes at a time.
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

// combine combines the value with the one that has arrived from another rank, in the order of
// ranks.
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

// segment returns how many bytes a chain passes on at a time: whole elements.
func (a *Reduction) segment() int { return max(1, chainSegment/a.Element) * a.Element }

// settle copies the value to Acc if it was combined with no other.
func (a *Reduction) settle() {
	place(a.Acc, a.value)
	a.value = a.Acc
}
