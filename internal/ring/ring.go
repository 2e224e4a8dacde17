package ring

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

const (
	line   = 64 // bytes that move between caches at once: messages begin at such
	header = 8  // before a message: its length plus one, skip, or 0 where none is so far
	skip   = 1<<64 - 1
)

// Size is how much memory a ring takes that has room for so many bytes, a power of
// two, from 256 on.
func Size(room int) int { return line + room }

// Longest is how many bytes a message may have in a ring with so much room.
func Longest(room int) int { return room/4 - header }

// A memory is what the two share: first how far the reader has come, then the messages,
// around and around. Positions in it only grow.
type memory []byte

func (m memory) room() uint64 { return uint64(len(m)) - line }

func (m memory) at(position uint64) int { return line + int(position&(m.room()-1)) }

// left is how much room there is between a position and the end.
func (m memory) left(position uint64) uint64 { return m.room() - position&(m.room()-1) }

func (m memory) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&m[at])) }

// progress returns how far the reader says it has come: not back, nor past what there is.
func (m memory) progress(before, written uint64) (uint64, error) {
	read := atomic.LoadUint64(m.word(0))
	if read < before || read > written {
		return before, fmt.Errorf("shared memory: its reader is at %d, expected %d to %d", read, before, written)
	}
	return read, nil
}

// cells is what a message of n bytes takes.
func cells(n int) uint64 { return (header + uint64(n) + line - 1) &^ (line - 1) }

// A Writer is the end of the process that sends. The zero Writer has no room.
type Writer struct {
	memory
	next    uint64 // where the next message goes
	read    uint64 // how far the reader has come, at least
	first   uint64 // where the message goes that is being written: next, or the beginning
	reserve uint64 // bytes of it, with its header
}

// NewWriter returns the sender's end of the ring in memory of some Size that is all
// zero, at an address that is a multiple of 64.
func NewWriter(shared []byte) Writer { return Writer{memory: shared} }

// Begin returns where to put the bytes of a message, n of them, or nil if there is no
// room so far.
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

// A Reader is the end of the process that receives.
type Reader struct {
	memory
	next uint64
	told uint64 // what the writer knows of it: up to there all is clear
}

// NewReader returns the receiver's end.
func NewReader(shared []byte) Reader { return Reader{memory: shared} }

// Ready says whether there is a message.
func (r *Reader) Ready() bool { return atomic.LoadUint64(r.word(r.at(r.next))) != 0 }

// Read returns the next message, which is the caller's until Done; or nil if there is
// none. The other process may still change its bytes, but not their number.
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

// Done gives back the bytes of the message that Read has returned, n of them.
func (r *Reader) Done(n int) {
	r.next += cells(n)
	if r.next-r.told > r.room()/4 { // not each time: the writer would wait for the lines
		for ; r.told < r.next; r.told += line {
			*r.word(r.at(r.told)) = 0 // a header may come to be here
		}
		atomic.StoreUint64(r.word(0), r.told)
	}
}
