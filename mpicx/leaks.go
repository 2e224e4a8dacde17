package mpicx

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// leaks records what a rank's program has left behind: failed futures that nobody has waited for, and, for
// mpicxtest, messages that nobody has received.
//
// A failed future is excused if an error of its communicator follows, because the error ends what was
// begun before, and programs continue elsewhere. Also excused are futures that were cancelled, or that
// an error, a death, or the end of a rank's program has ended, and those whose Wait an error of another
// communicator has ended.
type leaks struct {
	mu       sync.Mutex
	returned bool // the program has returned
	failed   []failedFuture
	excused  []*waiting.Cell
	messages []lostMessage
}

// A lostMessage is a message that had not been received when the program closed the communicator or
// returned.
type lostMessage struct {
	comm *ledger.Comm
	text string
}

type failedFuture struct {
	cell *waiting.Cell
	comm *ledger.Comm
	name string // of comm
	err  error
	call bool // it is of a collective operation
	// unmet says that it is of a collective operation that other ranks have not called: they have called another one,
	// or their programs have ended.
	unmet bool
}

func (f failedFuture) Error() string {
	return "nobody has waited for what ended with " + f.err.Error() + ", on " + f.name
}

func (f failedFuture) Unwrap() error { return f.err }

// failing notes f, whose error is not others'. What a program has left under way when it returned may fail for any
// reason, except for collective operations.
func (l *leaks) failing(f failedFuture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.ContainsFunc(l.failed, func(g failedFuture) bool { return g.cell == f.cell })
	if !known && (!l.returned || f.call) && !slices.Contains(l.excused, f.cell) {
		l.failed = append(l.failed, f)
	}
}

// interrupted notes futures whose Wait has ended with err. If that is an error of all ranks, the program has been told
// why they stay pending.
func (l *leaks) interrupted(waited []*waiting.Cell, err error) {
	if !waiting.IsCommon(err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f failedFuture) bool { return slices.Contains(waited, f.cell) })
	l.excused = slices.DeleteFunc(l.excused, (*waiting.Cell).IsDone)
	for _, cell := range waited {
		if !cell.IsDone() && !slices.Contains(l.excused, cell) {
			l.excused = append(l.excused, cell)
		}
	}
}

// end notes that the program has returned.
func (l *leaks) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returned = true
}

// isOthers says whether the cause of err is not the operation that ends with it. A send to a rank that
// has returned is excused here: its message is one that nobody has received.
func isOthers(err error) bool {
	m, ok := errors.AsType[*MPIError](err)
	return !ok && !is[*future.Panicked](err) || waiting.IsCommon(err) || is[*transport.LeftError](err) && !strings.Contains(strings.ToLower(m.Op), "send") ||
		is[*ProcFailedError](err) || errors.Is(err, ErrRevoked) || errors.Is(err, transport.ErrDied) || errors.Is(err, transport.ErrCancelled) ||
		errors.Is(err, errLeftBehind)
}

// told notes that the program was told the result of a future.
func (l *leaks) told(cell *waiting.Cell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f failedFuture) bool { return f.cell == cell })
}

// excuse forgets what was left on c, because c has an error. A program that has returned is not told of that, so what
// other ranks have not called stays.
func (l *leaks) excuse(c *ledger.Comm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f failedFuture) bool { return f.comm == c && !(f.unmet && l.returned) })
	l.messages = slices.DeleteFunc(l.messages, func(m lostMessage) bool { return m.comm == c })
}

// lose notes messages of c, which may have been noted before.
func (l *leaks) lose(c *ledger.Comm, messages []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.Clone(l.messages)
	for _, text := range messages {
		m := lostMessage{c, text}
		if i := slices.Index(known, m); i >= 0 {
			known = slices.Delete(known, i, i+1)
		} else {
			l.messages = append(l.messages, m)
		}
	}
}

// wrong returns the failures that which selects, or nil. A panic is returned alone.
func (l *leaks) wrong(which func(failedFuture) bool) error {
	l.mu.Lock()
	failed := slices.Clone(l.failed)
	l.mu.Unlock()
	var all []error
	for _, f := range failed {
		if !which(f) {
			continue
		}
		if p, ok := f.err.(*future.Panicked); ok {
			return p
		}
		all = append(all, f)
	}
	return errors.Join(all...)
}

// all describes what was left behind.
func (l *leaks) all() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.failed {
		all = append(all, f.Error())
	}
	for _, m := range l.messages {
		all = append(all, "nobody has received "+m.text)
	}
	return all
}
