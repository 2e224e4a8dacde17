// Package label puts ranks in front of lines of output, and keeps lines whole. It must never
// know where ranks run.
package label

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Lines returns text with the rank in front of each line: [2]. The last one gets an end if it
// has none.
func Lines(rank int, text []byte) (labelled []byte) {
	for line := range bytes.Lines(text) {
		labelled = append(fmt.Appendf(labelled, "[%d] ", rank), line...)
	}
	if n := len(labelled); n > 0 && labelled[n-1] != '\n' {
		labelled = append(labelled, '\n')
	}
	return labelled
}

// A Writer writes the lines of a rank once they are whole.
type Writer struct {
	rank  int
	mu    *sync.Mutex // of all that write to the same
	to    io.Writer
	begun []byte // a line, without its label; mu protects it
}

// New returns a Writer to what mu protects.
func New(rank int, to io.Writer, mu *sync.Mutex) *Writer { return &Writer{rank: rank, to: to, mu: mu} }

// longest is how much of a line is kept until its end comes.
const longest = 1 << 20

func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, b...)
	n := bytes.LastIndexByte(w.begun, '\n') + 1
	if len(w.begun)-n > longest {
		n = len(w.begun)
	}
	if err := w.pass(n); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close writes a line that has no end. What is written later is written all the same.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(len(w.begun))
}

// pass writes the first n bytes of what has begun.
func (w *Writer) pass(n int) error {
	if n == 0 {
		return nil
	}
	whole := Lines(w.rank, w.begun[:n])
	w.begun = bytes.Clone(w.begun[n:])
	_, err := w.to.Write(whole)
	return err
}
