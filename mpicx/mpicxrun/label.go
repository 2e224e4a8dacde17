//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// An output is where the lines of all processes go.
type output struct {
	mu    sync.Mutex
	to    io.Writer
	lines []*lines
}

// of returns a process's part of it.
func (o *output) of(rank int) io.Writer {
	l := &lines{output: o, label: fmt.Appendf(nil, "[%d] ", rank)}
	o.lines = append(o.lines, l)
	return l
}

// flush writes the lines that have no end.
func (o *output) flush() {
	for _, l := range o.lines {
		if len(l.begun) > 0 {
			_, _ = l.Write([]byte("\n"))
		}
	}
}

// lines writes whole lines, each with a label.
type lines struct {
	*output
	label []byte
	begun []byte // a line, without its label
}

// longest is how much of a line is kept until its end comes.
const longest = 1 << 20

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = append(l.begun, b...)
	var whole []byte
	for {
		n := bytes.IndexByte(l.begun, '\n') + 1
		if n == 0 && len(l.begun) > longest {
			l.begun = append(l.begun, '\n')
			n = len(l.begun)
		}
		if n == 0 {
			break
		}
		whole = append(append(whole, l.label...), l.begun[:n]...)
		l.begun = l.begun[n:]
	}
	l.begun = bytes.Clone(l.begun)
	if len(whole) > 0 {
		if _, err := l.to.Write(whole); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
