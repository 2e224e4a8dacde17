package ring

import (
	"fmt"
	"sync/atomic"
)

// A PipeWriter is the sending end of a pipe: memory that two processes share for the bytes of
// long messages. A ring carries their lengths.
type PipeWriter struct {
	memory
	next, read uint64
}

// NewPipeWriter returns the sending end of the pipe in memory as for NewWriter.
func NewPipeWriter(shared []byte) PipeWriter { return PipeWriter{memory: shared} }

// Space returns room for at most this many bytes: less at the end of the memory, and none if
// the reader has not read enough of the bytes before.
func (w *PipeWriter) Space(most int) (space []byte, err error) {
	if w.room()-(w.next-w.read) < uint64(most) {
		if w.read, err = w.progress(w.read, w.next); err != nil {
			return nil, err
		}
	}
	n := min(uint64(most), w.room()-(w.next-w.read), w.left(w.next))
	at := w.at(w.next)
	return w.memory[at : at+int(n)], nil
}

// Sent says that this many bytes are in the room that Space has returned.
func (w *PipeWriter) Sent(n int) { w.next += uint64(n) }

// A PipeReader is the receiving end.
type PipeReader struct {
	memory
	next uint64
}

// NewPipeReader returns the receiving end.
func NewPipeReader(shared []byte) PipeReader { return PipeReader{memory: shared} }

// Bytes returns the next n bytes, the number given to one call of Sent.
func (r *PipeReader) Bytes(n uint64) ([]byte, error) {
	if left := r.left(r.next); n > left {
		return nil, fmt.Errorf("shared memory: %d bytes in a pipe, expected %d or fewer", n, left)
	}
	at := r.at(r.next)
	return r.memory[at : at+int(n)], nil
}

// Done frees the bytes for the sender.
func (r *PipeReader) Done(n int) {
	r.next += uint64(n)
	atomic.StoreUint64(r.word(0), r.next)
}
