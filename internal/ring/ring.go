package ring

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

const (
	line   = 64 // bytes of a cache line; messages begin at multiples of it
	header = 8  // before a message: its length plus one; or skip; or 0 if there is no message yet
	skip   = 1<<64 - 1
)

// Size returns the memory that a ring needs for this much room: a power of two, at least 256
// bytes.
func Size(room int) int { return line + room }

// Longest returns how many bytes a message may have in a ring with this much room.
func Longest(room int) int { return room/4 - header }

// A memory is what the two processes share: first the reader's position, then the messages, in
// a circle. Positions only grow.
type memory []byte

func (m memory) room() uint64 { return uint64(len(m)) - line }

func (m memory) at(position uint64) int { return line + int(position&(m.room()-1)) }

// left returns the room between a position and the end of the memory.
func (m memory) left(position uint64) uint64 { return m.room() - position&(m.room()-1) }

func (m memory) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&m[at])) }

// progress returns the position that the reader has written, which must not be lower than
// before, nor beyond what was written.
func (m memory) progress(before, written uint64) (uint64, error) {
	read := atomic.LoadUint64(m.word(0))
	if read < before || read > written {
		return before, fmt.Errorf("shared memory: its reader is at %d, expected %d to %d", read, before, written)
	}
	return read, nil
}

// cells returns the bytes that a message of n bytes takes.
func cells(n int) uint64 { return (header + uint64(n) + line - 1) &^ (line - 1) }

// A Writer is the sending end of a ring. The zero Writer has no room.
type Writer struct {
	memory
	next    uint64 // position of the next message
	read    uint64 // the reader's position, or one that it has passed
	first   uint64 // position of the message that is being written: next, or the beginning of the memory
	reserve uint64 // bytes of that message with its header
}

// NewWriter returns the sending end of the ring in this memory: its length is a Size, its
// address is a multiple of 64, and all its bytes are zero.
func NewWriter(shared []byte) Writer { return Writer{memory: shared} }

// Begin returns the place for the n bytes of a message, or nil if there is no room yet.
func (w *Writer) Begin(n int) ([]byte, error) {
	if len(w.memory) == 0 {
		return nil, nil
	}
	w.first, w.reserve = w.next, cells(n)
	if left := w.left(w.next); w.reserve > left {
		w.first += left
	}
	end := w.first + w.reserve
	if end-w.read > w.room() {
		var err error
		if w.read, err = w.progress(w.read, w.next); err != nil || end-w.read > w.room() {
			return nil, err
		}
	}
	at := w.at(w.first) + header
	return w.memory[at : at+n : at+n], nil
}

// End sends the message that Begin has begun, of n bytes.
func (w *Writer) End(n int) {
	atomic.StoreUint64(w.word(w.at(w.first)), uint64(n)+1)
	if w.first != w.next {
		atomic.StoreUint64(w.word(w.at(w.next)), skip)
	}
	w.next = w.first + w.reserve
}

// A Reader is the receiving end of a ring.
type Reader struct {
	memory
	next uint64
	told uint64 // the position that the writer knows; everything before it has been cleared
}

// NewReader returns the receiving end.
func NewReader(shared []byte) Reader { return Reader{memory: shared} }

// Ready says whether there is a message.
func (r *Reader) Ready() bool { return atomic.LoadUint64(r.word(r.at(r.next))) != 0 }

// Read returns the next message, which the caller may use until Done, or nil if there is none.
// The other process may still change its bytes, but not their number.
func (r *Reader) Read() (message []byte, err error) {
	h := atomic.LoadUint64(r.word(r.at(r.next)))
	if h == skip {
		r.next += r.left(r.next)
		h = atomic.LoadUint64(r.word(line))
	}
	if h == 0 {
		return nil, nil
	}
	n, most := h-1, min(uint64(Longest(int(r.room()))), r.left(r.next)-header)
	if n > most {
		return nil, fmt.Errorf("shared memory: a message of %d bytes, expected %d or fewer", n, most)
	}
	at := r.at(r.next) + header
	return r.memory[at : at+int(n)], nil
}

// Done frees the n bytes of the message that Read has returned.
func (r *Reader) Done(n int) {
	r.next += cells(n)
	if r.next-r.told > r.room()/4 { // not each time: the writer would have to wait for the cache lines
		for ; r.told < r.next; r.told += line {
			*r.word(r.at(r.told)) = 0 // a later header may be here
		}
		atomic.StoreUint64(r.word(0), r.told)
	}
}
