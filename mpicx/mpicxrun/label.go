//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"io"
	"sync"

	"github.com/mpicx/go-mpicx/internal/label"
)

// An output collects the lines of all processes.
type output struct {
	mu    sync.Mutex
	to    io.Writer
	err   error // the first of to
	lines []*label.Writer
}

// Write is called by the writers of the processes, which hold mu.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if err != nil && o.err == nil {
		o.err = err
		say(err.Error())
	}
	return n, err
}

// writerOf returns the writer of one process.
func (o *output) writerOf(rank int) io.Writer {
	l := label.New(rank, o, &o.mu)
	o.lines = append(o.lines, l)
	return l
}

// flush writes incomplete lines.
func (o *output) flush() {
	for _, l := range o.lines {
		_ = l.Close()
	}
}
