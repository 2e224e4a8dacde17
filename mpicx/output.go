package mpicx

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/label"
	"github.com/mpicx/go-mpicx/internal/signature"
)

// printing is held while a rank's lines are written. The ranks of a process may share the
// writer.
var printing sync.Mutex

// Output returns a writer for what this rank prints. It writes whole lines to w, those of one
// Write together, each with the rank in front: [2]. The lines of the ranks of one process are
// never mixed. Close writes a line that is not finished, and does not close w.
//
// Each rank writes by itself, so a death or an error of another rank has no effect on it. If w
// is a pipe, as under mpirun, short lines of several processes stay whole too. For lines in
// rank order take [Comm.Fprintf].
func (c *Comm) Output(w io.Writer) io.WriteCloser {
	c.mustExist("Output")
	return label.New(c.rank, w, &printing)
}

// Fprintf has rank 0 write the text of all ranks to its w, in rank order, with the rank in
// front of each line: [2]. It is collective and returns nil when all is written. At rank 0 it
// returns an error of w. Fprintf and Output of the same process write nothing else in between.
//
// An error or a death ends it like any collective operation. Then each rank to which it returns
// an error writes its own lines to its own w. So a line of a living rank may be written twice,
// but every line is written. [Comm.Output] involves no other rank.
func (c *Comm) Fprintf(ctx context.Context, w io.Writer, format string, args ...any) error {
	what := call{Kind: signature.Fprintf}
	if err := c.ready("Fprintf", ctx); err != nil {
		return err
	}
	k := check{op: "Fprintf"}
	k.that(w != nil, ClassOther, "nil writer, expected at least one for this rank's lines")
	own := label.Lines(c.rank, fmt.Appendf(nil, format, args...))
	a := &collective.GatherAny{Send: own}
	err := c.run(what, k.err, a).Wait(ctx)
	if k.err != nil {
		return err
	}
	var written error
	if err == nil {
		if c.rank == 0 {
			own, written = nil, write(w, slices.Concat(a.Parts...))
		}
		err = c.run(what, nil, c.chooser.Bcast(nil, nil, 0)).Wait(ctx)
	}
	if err != nil && own != nil {
		written = write(w, own)
	}
	return cmp.Or(err, written)
}

func write(w io.Writer, lines []byte) error {
	printing.Lock()
	defer printing.Unlock()
	_, err := w.Write(lines)
	return err
}
