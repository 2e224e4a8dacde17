// Package label puts ranks in front of lines of output, and keeps lines whole. It must never know
// where ranks run.
package label

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Lines returns text with the rank in front of each line: [2]. It ends the last line if necessary.
func Lines(rank int, text []byte) (labelled []byte) {
	for line := range bytes.Lines(text) {
		labelled = append(fmt.Appendf(labelled, "[%d] ", rank), line...)
	}
	if n := len(labelled); n > 0 && labelled[n-1] != '\n' {
		labelled = append(labelled, '\n')
	}
	return labelled
}

// A Writer writes each line of a rank once the line is complete.
type Writer struct {
	rank  int
	mu    *sync.Mutex // shared by all Writers to the same to
	to    io.Writer
	begun []byte // an incomplete line, without its label; mu protects it
}

// New returns a Writer to the given writer, which mu protects.
func New(rank int, to io.Writer, mu *sync.Mutex) *Writer { return &Writer{rank: rank, to: to, mu: mu} }

// longest is the maximum length of an incomplete line that is kept.
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

// Close writes an incomplete line. Later Writes still work.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(len(w.begun))
}

// pass writes the first n bytes of begun.
func (w *Writer) pass(n int) error {
	if n == 0 {
		return nil
	}
	whole := Lines(w.rank, w.begun[:n])
	w.begun = bytes.Clone(w.begun[n:])
	_, err := w.to.Write(whole)
	return err
}
