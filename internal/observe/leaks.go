package observe

import (
	"errors"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Leaks records the mistakes that a rank's program has not noticed: failed futures for which no
// goroutine has waited, and, for mpicxtest, messages that no receive has matched.
//
// A failed future is excused in these cases:
//
//   - Its communicator has an error later. Then the program gives up whatever it has begun before.
//   - It was cancelled, or was ended by an error of all ranks, a death, or the end of a rank's
//     program.
//   - An error of all ranks has ended a Wait for it.
type Leaks struct {
	mu       sync.Mutex // protects the fields
	returned bool       // the program has returned
	// failed are the failed futures whose error the program was not told. A future leaves the
	// list when the program is told its error, or when it is excused.
	failed []FailedFuture
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

// A FailedFuture is a future that has ended with an error. As an error it says that no goroutine
// has waited for it.
type FailedFuture struct {
	Cell *waiting.Cell
	Comm *ledger.Comm
	Name string // of Comm
	Err  error
	Call bool // the future is that of a collective operation
	// Unmet says that the future is that of a collective operation that some other ranks have
	// not called: they have called another one, or their programs have ended.
	Unmet bool
}

func (f FailedFuture) Error() string {
	return "nobody has waited for what ended with " + f.Err.Error() + ", on " + f.Name
}

func (f FailedFuture) Unwrap() error { return f.Err }

// Failing notes f, unless it is excused. The cause of its error is the operation itself, not an
// error of all ranks, for example. After the program has returned, only failures of collective
// operations are noted: other pending operations may then fail for any reason.
func (l *Leaks) Failing(f FailedFuture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.ContainsFunc(l.failed, func(g FailedFuture) bool { return g.Cell == f.Cell })
	if !known && (!l.returned || f.Call) && !slices.Contains(l.excused, f.Cell) {
		l.failed = append(l.failed, f)
	}
}

// Interrupted notes that a Wait for the futures has ended with err. If err is an error of all
// ranks, it excuses the futures: the program was told why they stay pending.
func (l *Leaks) Interrupted(waited []*waiting.Cell, err error) {
	if !waiting.IsCommon(err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f FailedFuture) bool { return slices.Contains(waited, f.Cell) })
	l.excused = slices.DeleteFunc(l.excused, (*waiting.Cell).IsDone)
	for _, cell := range waited {
		if !cell.IsDone() && !slices.Contains(l.excused, cell) {
			l.excused = append(l.excused, cell)
		}
	}
}

// End notes that the program has returned.
func (l *Leaks) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returned = true
}

// Told removes a future from failed, because the program was told its error.
func (l *Leaks) Told(cell *waiting.Cell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f FailedFuture) bool { return f.Cell == cell })
}

// Excuse removes the failed futures and messages of c, because c has an error. Collective calls
// that other ranks have not made stay if the program has returned, because it is not told of the
// error.
func (l *Leaks) Excuse(c *ledger.Comm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = slices.DeleteFunc(l.failed, func(f FailedFuture) bool { return f.Comm == c && !(f.Unmet && l.returned) })
	l.messages = slices.DeleteFunc(l.messages, func(m lostMessage) bool { return m.comm == c })
}

// Unreceived adds messages of c, without those that are recorded already.
func (l *Leaks) Unreceived(c *ledger.Comm, messages []string) {
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

// Wrong returns the failures for which which returns true, joined, or nil. If one of them is a
// panic, it returns only the panic.
func (l *Leaks) Wrong(which func(FailedFuture) bool) error {
	l.mu.Lock()
	failed := slices.Clone(l.failed)
	l.mu.Unlock()
	var all []error
	for _, f := range failed {
		if !which(f) {
			continue
		}
		if p, ok := f.Err.(*future.Panicked); ok {
			return p
		}
		all = append(all, f)
	}
	return errors.Join(all...)
}

// All returns a line for each failed future and each lost message.
func (l *Leaks) All() (all []string) {
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
