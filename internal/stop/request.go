package stop

import (
	"bytes"
	"encoding/binary"
	"syscall"
)

// A Request says who asks for a stop, and why.
type Request struct {
	Generation int            // of the communicator for which it holds, and for those derived from it
	Rank       int            // in the world
	Signal     syscall.Signal // 0: the program asks
	Why        string         // at most MaxWhy bytes
}

// MaxWhy is the maximum length of a Request's Why, in bytes.
const MaxWhy = 224

// A Tally is what the ranks combine in order to stop in the same call: how many calls a rank has
// made, and why they stop. Tallies that are combined have the greatest number, and the Request of
// the lowest rank.
type Tally struct {
	Calls   uint64
	Request Request
}

// Size is the number of bytes of an encoded Tally.
const Size = 32 + MaxWhy

// Encode returns t as Size bytes: calls, rank, signal, generation and why, numbers in big endian.
// Therefore the smaller of two requests as bytes is that of the lower rank.
func (t Tally) Encode() []byte {
	b := make([]byte, Size)
	binary.BigEndian.PutUint64(b, t.Calls)
	binary.BigEndian.PutUint64(b[8:], uint64(t.Request.Rank))
	binary.BigEndian.PutUint64(b[16:], uint64(t.Request.Signal))
	binary.BigEndian.PutUint64(b[24:], uint64(t.Request.Generation))
	copy(b[32:], t.Request.Why)
	return b
}

// Decode is the inverse of Encode. The bytes may have come from another rank, so they may be
// anything.
func Decode(b []byte) Tally {
	b = append(bytes.Clone(b), make([]byte, max(0, Size-len(b)))...)
	return Tally{binary.BigEndian.Uint64(b), Request{
		Rank:       int(binary.BigEndian.Uint64(b[8:])),
		Signal:     syscall.Signal(binary.BigEndian.Uint64(b[16:])),
		Generation: int(binary.BigEndian.Uint64(b[24:])),
		Why:        string(bytes.TrimRight(b[32:Size], "\x00")),
	}}
}

// Never fills b with the tally of a rank that has made its last call: combined with others it says
// that they stop in no call.
func Never(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// Combine makes dst the combination of two encoded tallies. dst may be one of them.
func Combine(dst, left, right []byte) {
	calls := max(binary.BigEndian.Uint64(left), binary.BigEndian.Uint64(right))
	request := left[8:]
	if bytes.Compare(right[8:], request) < 0 {
		request = right[8:]
	}
	copy(dst[8:], request)
	binary.BigEndian.PutUint64(dst, calls)
}
