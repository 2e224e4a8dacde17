package mpicx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/label"
	"github.com/mpicx/go-mpicx/internal/ledger"
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

// ExitStatus returns the exit status for a program to which Run has returned err: 0 if err is nil,
// 75 (EX_TEMPFAIL) if it is a [StopError], so that a batch system can start the job again,
// otherwise 1.
func ExitStatus(err error) int {
	switch {
	case err == nil:
		return 0
	case stopIn(err) != nil:
		return 75
	}
	return 1
}

// Exit ends the process with [ExitStatus] of err, which Run has returned. It is the last call of a
// main function. An error is printed on standard error, once in a job: what all ranks have is
// printed by the rank that raised it, of several by the lowest, or by the lowest living one if a
// process has died, and a [StopError] by rank 0 of its communicator. Every rank prints an error of
// its own. Deferred functions of main do not run; Finalize comes before.
func Exit(err error) {
	if err != nil && isPrinted(err) {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(ExitStatus(err))
}

// isPrinted says whether this process prints the error in Exit.
func isPrinted(err error) bool {
	if all, ok := errors.AsType[*ranksError](err); ok && len(all.errs) > 1 {
		return true // of all ranks of this process
	}
	if s := stopIn(err); s != nil {
		return !s.elsewhere
	}
	if k, ok := errors.AsType[*CommCorruptedError](err); ok && k.of != nil {
		failed, dead := k.Failures, k.Dead
		switch {
		case len(failed) == 0:
		case failed[0].Message == hook.ErrUnseen.Error(): // a death, where the others do not survive
			failed, dead = nil, []int{failed[0].Rank}
		case strings.HasPrefix(failed[0].Message, propagatedFrom):
			failed = nil // that rank may print nothing: another one has raised the error
		}
		return len(k.unheard) > 0 || isFirst(k.of.Comm, failed, dead)
	}
	if p, ok := errors.AsType[*PropagatedError](err); ok && p.of != nil {
		return isFirst(p.of.Comm, p.Failures, nil)
	}
	return true
}

// isFirst says whether this rank is the lowest that has failed or, if none has, the lowest that has
// not died.
func isFirst(of *ledger.Comm, failures []Failure, dead []int) bool {
	first := 0
	if len(failures) > 0 {
		first = failures[0].Rank
	} else {
		for slices.Contains(dead, first) {
			first++
		}
	}
	return ownerOf(of).rank == first
}
