package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/mpicx/go-mpicx/mpicx"
)

// A progress shows the progress of the computation at rank 0, in one line that it overwrites.
// Without a terminal it shows nothing.
type progress struct {
	w    io.Writer // nil: no terminal, or another rank
	next time.Time
}

func newProgress(w io.Writer, comm *mpicx.Comm) *progress {
	if f, ok := w.(*os.File); ok && comm.Rank() == 0 && term.IsTerminal(int(f.Fd())) {
		return &progress{w: f}
	}
	return &progress{}
}

func (p *progress) show(l *lanczos, iterations int) {
	if p.w == nil || time.Now().Before(p.next) {
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[Kiteration %d of %d, lowest eigenvalue %.12f eV", len(l.alpha), iterations, lowest(l.alpha, l.beta, 1)[0])
	p.next = time.Now().Add(time.Second)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
