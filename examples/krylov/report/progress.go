package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// A progress shows the progress of a run on a terminal, in one line that it overwrites. Without a
// terminal it shows nothing.
type progress struct {
	w    io.Writer // nil: no terminal
	next time.Time
}

func newProgress(terminal bool, w io.Writer) *progress {
	if f, ok := w.(*os.File); ok && terminal && term.IsTerminal(int(f.Fd())) {
		return &progress{w: f}
	}
	return &progress{}
}

func (p *progress) show(run string, done int, residual, tol float64) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(50 * time.Millisecond)
	const width = 30
	filled := 0
	if part := math.Log(residual) / math.Log(tol); part > 0 { // false for NaN
		filled = int(width * min(part, 1))
	}
	fmt.Fprintf(p.w, "\r\x1b[K%-12s[%-*s] iteration %d, residual %.1e", run, width, strings.Repeat("=", filled), done, residual)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
