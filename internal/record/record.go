package record

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/signature"
)

// Kept is how many calls a Record keeps, the latest ones.
const Kept = 64

// A Record is the calls of one rank, on all its communicators. It grows with them, or lies in
// memory that other processes read, while the rank writes or after it was killed in mid-call. The
// zero Record is empty, and grows. The caller excludes concurrent calls in one process.
type Record struct {
	// Clock has the time of new calls, in seconds since 1970, or 0 if it is unknown, as it is if
	// Clock is nil.
	Clock *atomic.Uint32

	slots []uint64 // perCall words for each, used in turn
	next  int      // of the words: where the next call's begin
	made  uint64   // the number of all calls
	shown *uint64  // the same, for other processes: raised when the call's slot is complete
}

const (
	perCall = 3
	fewest  = 4        // calls for which a Record has room at first, if it grows
	shared  = Kept + 1 // the same, if others read it: one call may be half written
)

// Size is the size of the memory of In: whole cache lines.
const Size = ((1+perCall*shared)*8 + 63) &^ 63

// In makes a Record in memory of this Size that is all zero. Its address is a multiple of 8.
func In(memory []byte) Record {
	words := wordsOf(memory)
	return Record{slots: words[1:], shown: &words[0]}
}

func wordsOf(memory []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(&memory[:Size][0])), 1+perCall*shared)
}

// Add adds a call, the number-th of an epoch. See Call.
func (r *Record) Add(comm uint64, epoch uint32, number int, w signature.Word) {
	if r.next == len(r.slots) {
		r.turn()
	}
	when := uint32(0)
	if r.Clock != nil {
		when = r.Clock.Load()
	}
	encode((*[perCall]uint64)(r.slots[r.next:]), comm, epoch, number, w, when)
	r.next += perCall
	r.made++
	if r.shown != nil {
		atomic.StoreUint64(r.shown, r.made)
	}
}

// turn makes room behind the last slot, or goes back to the first.
func (r *Record) turn() {
	if room := len(r.slots); room < perCall*Kept {
		r.slots = append(make([]uint64, 0, max(perCall*fewest, 2*room)), r.slots...)
		r.slots = r.slots[:cap(r.slots)]
	} else {
		r.next = 0
	}
}

// Append appends the calls to a slice, the oldest first. Complete says that there were no others
// before.
func (r *Record) Append(to []Call) (all []Call, complete bool) {
	return appendFrom(&r.made, r.slots, to)
}

// AppendFrom appends the calls in the memory of another process's Record. The process may have
// died, or write at the same time, or have written anything.
func AppendFrom(memory []byte, to []Call) (all []Call, complete bool) {
	words := wordsOf(memory)
	return appendFrom(&words[0], words[1:], to)
}

func appendFrom(shown *uint64, slots []uint64, to []Call) (all []Call, complete bool) {
	made, room, begin := atomic.LoadUint64(shown), uint64(len(slots))/perCall, len(to)
	for i := made - min(made, Kept); i != made; i++ {
		to = append(to, decode(slots[perCall*(i%room):]))
	}
	// While they were read, those of the oldest may have been overwritten for which others came.
	came := atomic.LoadUint64(shown) - made
	return slices.Delete(to, begin, begin+int(min(came, uint64(len(to)-begin)))), came == 0 && made <= Kept
}

// A Call is a collective call.
type Call struct {
	Comm   uint64 // identifies the communicator, by its upper 40 bits
	Epoch  uint32 // how many errors there were before, in 24 bits
	Number int    // of the call, in the epoch; 0: it is none, but says that earlier ones are elsewhere
	Word   signature.Word
	Time   uint32 // in seconds since 1970; 0: unknown
}

const epochBits, timeBits = 24, 32

// IsOn says whether the call is on a communicator.
func (c *Call) IsOn(comm uint64) bool { return c.Comm>>epochBits == comm>>epochBits }

// Clock returns the time of day, or "" if it is unknown.
func (c *Call) Clock() string {
	if c.Time == 0 {
		return ""
	}
	return time.Unix(int64(c.Time), 0).Format("15:04:05")
}

func encode(words *[perCall]uint64, comm uint64, epoch uint32, number int, w signature.Word, when uint32) {
	words[0] = uint64(w)
	words[1] = comm>>epochBits<<epochBits | uint64(epoch)&(1<<epochBits-1)
	words[2] = uint64(number)<<timeBits | uint64(when)
}

func decode(words []uint64) Call {
	word, place, when := atomic.LoadUint64(&words[0]), atomic.LoadUint64(&words[1]), atomic.LoadUint64(&words[2])
	return Call{place >> epochBits << epochBits, uint32(place & (1<<epochBits - 1)), int(when >> timeBits), signature.Word(word), uint32(when)}
}

// Sent is how many calls Encode encodes, the latest ones.
const Sent = 16

// Encode returns the latest calls as bytes.
func Encode(calls []Call) (b []byte) {
	for _, c := range calls[max(0, len(calls)-Sent):] {
		var words [perCall]uint64
		encode(&words, c.Comm, c.Epoch, c.Number, c.Word, c.Time)
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	return b
}

// Decode appends the calls that were encoded to a slice. Any bytes are some calls.
func Decode(b []byte, to []Call) []Call {
	for ; len(b) >= 8*perCall; b = b[8*perCall:] {
		var words [perCall]uint64
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		to = append(to, decode(words[:]))
	}
	return to
}
