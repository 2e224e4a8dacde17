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
	lines []*label.Writer
}

// of returns the writer of one process.
func (o *output) of(rank int) io.Writer {
	l := label.New(rank, o.to, &o.mu)
	o.lines = append(o.lines, l)
	return l
}

// flush writes incomplete lines.
func (o *output) flush() {
	for _, l := range o.lines {
		_ = l.Close()
	}
}
