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

// leaks records the mistakes that a rank's program has not noticed: failed futures for which no
// goroutine has waited, and, for mpicxtest, messages that no receive has matched.
//
// A failed future is excused in these cases:
//
//   - An error of its communicator follows. The error ends all operations that were begun before,
//     and the program continues elsewhere.
//   - It was cancelled, or was ended by an error of all ranks, a death, or the end of a rank's
//     program.
//   - An error of all ranks has ended a Wait for it.
type leaks struct {
	mu       sync.Mutex // protects the fields
	returned bool       // the program has returned
	// failed are the failed futures whose error the program was not told. A future leaves the
	// list when the program is told its error, or when it is excused.
	failed []failedFuture
	// excused are pending futures for which a Wait has ended with an error of all ranks. If one
	// fails later, it does not enter failed.
	excused  []*waiting.Cell
	messages []lostMessage // only in tests
}

// A lostMessage is a message that had not been received when the program closed the communicator or
// returned.
type lostMessage struct {
	comm *ledger.Comm
	text string // describes the message: size, sender, tag, communicator
}

// A failedFuture is a future that has ended with an error. As an error it says that no goroutine
// has waited for it.
type failedFuture struct {
	cell *waiting.Cell
	comm *ledger.Comm
	name string // of comm
	err  error
	call bool // the future is that of a collective operation
	// unmet says that the future is that of a collective operation that some other ranks have
	// not called: they have called another one, or their programs have ended.
	unmet bool
}

func (f failedFuture) Error() string {
	return "nobody has waited for what ended with " + f.err.Error() + ", on " + f.name
}

func (f failedFuture) Unwrap() error { return f.err }

// failing notes f, unless it is excused. The caller has checked that the cause of its error is the
// operation itself; see isOthers. After the program has returned, only failures of collective
// operations are noted: other pending operations may then fail for any reason.
func (l *leaks) failing(f failedFuture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.ContainsFunc(l.failed, func(g failedFuture) bool { return g.cell == f.cell })
	if !known && (!l.returned || f.call) && !slices.Contains(l.excused, f.cell) {
		l.failed = append(l.failed, f)
	}
}

// interrupted notes that a Wait for the futures has ended with err. If err is an error of all
// ranks, it excuses the futures: the program was told why they stay pending.
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

// isOthers says whether the cause of err lies outside the operation that ends with it: in an error
// of all ranks, a death, the end of another rank's program, a revocation, or a cancellation. An
// error that is neither an *MPIError nor a panic also counts as such. A send to a rank that has
// returned does not: nobody receives its message.
func isOthers(err error) bool {
	m, ok := errors.AsType[*MPIError](err)
	return !ok && !is[*future.Panicked](err) || waiting.IsCommon(err) || is[*transport.LeftError](err) && !strings.Contains(strings.ToLower(m.Op), "send") ||
		is[*ProcFailedError](err) || errors.Is(err, ErrRevoked) || errors.Is(err, transport.ErrDied) || errors.Is(err, transport.ErrCancelled) ||
		errors.Is(err, errLeftBehind)
}

// told removes a future from failed, because the program was told its error.
func (l *leaks) told(cell *waiting.Cell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f failedFuture) bool { return f.cell == cell })
}

// excuse removes the failed futures and messages of c, because c has an error. Collective calls
// that other ranks have not made stay if the program has returned, because it is not told of the
// error.
func (l *leaks) excuse(c *ledger.Comm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f failedFuture) bool { return f.comm == c && !(f.unmet && l.returned) })
	l.messages = slices.DeleteFunc(l.messages, func(m lostMessage) bool { return m.comm == c })
}

// lose adds messages of c, without those that are recorded already.
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

// wrong returns the failures that which selects, joined, or nil. If one of them is a panic, it
// returns only the panic.
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

// all returns a line for each failed future and each lost message.
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
