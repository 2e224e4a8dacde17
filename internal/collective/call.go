package collective

import (
	"math"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// An Op sets dst to left op right, element by element. Dst may be one of the two. An Op is
// associative. It need not be commutative: operations apply it in the order of ranks, except
// for algorithms that say otherwise. They group the values in the same way every time, so
// floating-point results are the same at all ranks and in every run.
type Op func(dst, left, right []byte)

// A Reduction has the arguments of a reduction at one rank.
type Reduction struct {
	// Send is this rank's value, and stays unchanged; nil: the value is in Recv.
	Send []byte
	// Recv is where values are combined and where the result is stored. It may be Send. It may
	// be nil at a rank that has no result.
	Recv []byte
	Op   Op
	// Element is the length of an element in bytes. The value may be split between elements.
	Element int
	// Ordered says that Op does not commute.
	Ordered bool
	// Folds says that right may be several values, one behind the other, which Op combines with
	// left in order. That is for an Op whose call takes long, however little it combines.
	Folds bool
}

// len returns the length of the value.
func (r *Reduction) len() int { return max(len(r.Send), len(r.Recv)) }

// A Call is one rank's part in a collective operation: the arguments, and the state of its
// algorithm.
type Call struct {
	algorithm step
	// meeting is the Call's part on a board; without a Carrier it is an algorithm's, by messages.
	meeting   transport.Meeting
	op        operation // of meeting
	exclusive bool      // it is an exclusive scan
	// share is how many bytes each other rank sends this one, where ranks meet but do not see each
	// other's buffers; 0: they do, or there are none.
	share int

	Reduction // of an operation that combines nothing: Send and Recv alone. A Bcast has only Recv.
	root      int
	division  *division // of an algorithm in two levels
	parts     Parts     // how Recv of an Allgatherv, or Send of a ReduceScatter, is divided

	*state // nil: it has needed none, as on a board of goroutines
}

// state is the state of an algorithm.
type state struct {
	// Of several algorithms one after another, number at is carried out since step begun.
	at, begun int

	// value is the rank's value in a reduction: Send, or Recv once it has been combined with
	// others. The one that it is combined with next arrives in tmp.
	value, tmp []byte
	// arrived are the parts or values of several ranks, and each is how many of them arrive in one
	// step.
	arrived []byte
	each    int
	// result is the program's Recv while Recv is another buffer.
	result []byte
	// The rank has, or combines, these parts.
	first, last int
}

// A step is an algorithm: the function that carries out step k of a Call, as Algorithm.Step does.
type step func(a *Call, k int, x *Exchange) (more bool)

// Step carries out a step.
func (a *Call) Step(k int, x *Exchange) bool {
	a.keepState()
	return a.algorithm(a, k, x)
}

func (a *Call) keepState() {
	if a.state == nil {
		a.state = new(state)
	}
}

// inSequence carries out step k of several algorithms, one after another.
func (a *Call) inSequence(k int, x *Exchange, algorithms ...step) bool {
	more := algorithms[a.at](a, k-a.begun, x)
	if !more && a.at < len(algorithms)-1 {
		a.at, a.begun, more = a.at+1, k+1, true
	}
	return more
}

// begin prepares a reduction. Arrives says whether this rank will receive values.
func (a *Call) begin(x *Exchange, arrives bool) { a.beginSegments(x, arrives, math.MaxInt) }

// beginSegments is begin for a rank that receives at most this many bytes at a time.
func (a *Call) beginSegments(x *Exchange, arrives bool, most int) {
	a.value = a.Send
	if a.Send == nil {
		a.value = a.Recv
	}
	if arrives {
		a.tmp = x.Scratch(min(most, len(a.value)))
		if a.Recv == nil {
			a.Recv = x.Scratch(len(a.value))
		}
	}
}

// combine combines the value with the one that has arrived from another rank, in the order of
// ranks.
func (a *Call) combine(from int, x *Exchange) { a.combineSpan(from, x, 0, len(a.value)) }

// combineSpan is combine for the bytes from first to last-1.
func (a *Call) combineSpan(from int, x *Exchange, first, last int) {
	left, right := a.value[first:last], a.tmp[first:last]
	if from < x.Rank() {
		left, right = right, left
	}
	a.Op(a.Recv[first:last], left, right)
	a.value = a.Recv
}

// fold combines the value with others, one behind the other in values, which are those of higher
// ranks in their order if Op does not commute.
func (a *Call) fold(values []byte) {
	each := len(a.value)
	if a.Folds {
		each = len(values)
	}
	for ; len(values) > 0; values = values[each:] {
		a.Op(a.Recv, a.value, values[:each])
		a.value = a.Recv
	}
}

// settle copies the value to Recv if it was combined with no other.
func (a *Call) settle() {
	place(a.Recv, a.value)
	a.value = a.Recv
}

// chainSegment is how many bytes a chain passes on at a time. It is a variable for tests.
var chainSegment = 128 << 10

// segment returns how many bytes a chain passes on at a time: whole elements.
func (a *Call) segment() int {
	element := max(1, a.Element)
	return max(1, chainSegment/element) * element
}

// segments returns the number of segments in length bytes, each bytes a segment.
func segments(length, each int) int { return (length + each - 1) / each }

func segment(b []byte, k, each int) []byte { return b[k*each : min((k+1)*each, len(b))] }
