package mpicx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Failure is one error that a rank told the others about.
type Failure struct {
	Rank    int       // who failed, in the communicator of the error
	Code    int       // what SignalError was given, or the error's ErrorCode() int; else 0
	Message string    // the error's text, at most MaxMessage bytes of it
	Origin  string    // where it was signalled: function, file and line
	Time    time.Time // when, by the clock of Rank

	path string // inside of which Try calls on the communicator: see ledger.Scope.Path; varints
}

// MaxMessage is the length in bytes beyond which a Failure's text is cut.
const MaxMessage = 1024

func (f Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d", f.Rank)
	if f.Code != 0 {
		fmt.Fprintf(&b, " (code %d)", f.Code)
	}
	if f.Message != "" {
		fmt.Fprintf(&b, ": %s", f.Message)
	}
	return b.String()
}

func list(failures []Failure) string {
	const most = 4
	var parts []string
	for i, f := range failures {
		if i == most && len(failures) > most+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(failures)-most))
			break
		}
		parts = append(parts, f.String())
	}
	return strings.Join(parts, "; ")
}

// A PropagatedError says that ranks signalled errors. Every rank of the
// communicator has it, with the same Failures, and the communicator goes on
// working: all messages from before the error are gone (paper section III-A,
// Propagated_exception). What to do about it is the program's decision, which
// every rank can take alike.
type PropagatedError struct {
	// Failures are those of all ranks that signalled before they knew of the
	// others', by rank. Ranks of one process share the slice: don't change it.
	Failures []Failure

	verdict
}

func (e *PropagatedError) Error() string {
	return "mpicx: error propagated from " + list(e.Failures)
}

// A CommCorruptedError says that a rank left Guard by an error or a panic, or
// that a process died: the communicator has no use any more, at any rank (paper
// section III-A, Corrupted_comm_exception).
type CommCorruptedError struct {
	Failures []Failure // who unwound, by rank; ranks of one process share the slice
	Dead     []int     // which processes died, in ascending order

	verdict
}

func (e *CommCorruptedError) Error() string {
	s := "mpicx: communicator corrupted"
	if len(e.Failures) > 0 {
		s += " by " + list(e.Failures)
	}
	if len(e.Dead) > 0 {
		s += fmt.Sprintf("; dead: %v", e.Dead)
	}
	return s
}

// verdict is what the two errors that all ranks have share.
type verdict struct {
	common
	comm   *Comm  // the communicator it is an error of, at this rank
	causes error  // what this rank itself raised
	told   uint32 // atomic; 1: a Try has returned it
}

type common = waiting.CommonError // a name that is not exported

// Unwrap returns the errors that this rank itself signalled, so that errors.Is
// finds the cause at its origin. It returns nil elsewhere.
func (v *verdict) Unwrap() error { return v.causes }

// withoutVerdicts is err, but a verdict that it wraps is not found by its type: a rank
// that unwinds because of a *PropagatedError must not take the corruption that follows
// for one, since the other ranks do not.
func withoutVerdicts(err error) error {
	if is[*PropagatedError](err) || is[*CommCorruptedError](err) {
		return &hidden{err}
	}
	return err
}

// hidden is an error that wraps a verdict which is not to be found.
type hidden struct{ err error }

func (h *hidden) Error() string        { return h.err.Error() }
func (h *hidden) Is(target error) bool { return errors.Is(h.err, target) }

func (h *hidden) Format(s fmt.State, verb rune) {
	fmt.Fprintf(s, fmt.FormatString(s, verb), h.err)
}

func (h *hidden) As(target any) bool {
	switch target.(type) {
	case **PropagatedError, **CommCorruptedError, *waiting.Common:
		return false
	}
	return errors.As(h.err, target)
}

// A Class says of what kind an MPIError is, in MPI's terms.
type Class int

// The classes that operations of this package report.
const (
	ClassOther       Class = iota // MPI_ERR_OTHER: see the text
	ClassBuffer                   // MPI_ERR_BUFFER: buffers do not fit one another
	ClassCount                    // MPI_ERR_COUNT: a length is wrong
	ClassTag                      // MPI_ERR_TAG: no such tag
	ClassRank                     // MPI_ERR_RANK: no such rank
	ClassRoot                     // MPI_ERR_ROOT: no such root
	ClassOp                       // MPI_ERR_OP: the operation is not defined on the type
	ClassType                     // MPI_ERR_TYPE: the type has pointers or no encoding, or the message is no whole number of its elements
	ClassTruncate                 // MPI_ERR_TRUNCATE: the message is longer than the buffer
	ClassComm                     // MPI_ERR_COMM: the communicator is closed, or nil
	ClassUnsupported              // MPI_ERR_UNSUPPORTED_OPERATION: this backend can't
)

var classNames = [...]string{"other", "buffer", "count", "tag", "rank", "root", "op", "type", "truncate", "comm", "unsupported"}

func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("Class(%d)", int(c))
	}
	return classNames[c]
}

// An MPIError is any error that is of one operation at one rank alone: a bad
// argument, a message that does not fit, or what the MPI library reports.
type MPIError struct {
	Op    string // "Send", "Allreduce", …
	Class Class
	Text  string // what was wrong, with the value, and what was expected

	err error
}

func (e *MPIError) Error() string { return fmt.Sprintf("mpicx: %s: %s", e.Op, e.Text) }

// Unwrap returns the error behind it, if there is one: errors.ErrUnsupported
// for ClassUnsupported.
func (e *MPIError) Unwrap() error { return e.err }

// useOp is the Op of what a communicator says to any operation: that it is closed.
const useOp = "use"

func isClosedError(err error) bool {
	e, ok := err.(*MPIError)
	return ok && e.Class == ClassComm
}

// ofOperation returns an error that any operation would get as that of op.
func ofOperation(op string, err error) error {
	if e, ok := err.(*MPIError); ok && e.Op == useOp {
		return &MPIError{Op: op, Class: e.Class, Text: e.Text, err: e.err}
	}
	return err
}

const nilComm = "nil communicator (what Split gives with Undefined)"

const nilContext = "nil context, expected one that says how long to wait"

// ready returns the error of a call that can't be made: on no communicator, after its
// job, or without a context.
func (c *Comm) ready(op string, ctx context.Context) error {
	switch {
	case c == nil:
		return mpiErrorf(op, ClassComm, nilComm)
	case c.proc.over.Load():
		return jobOver(op, c)
	case ctx == nil:
		return mpiErrorf(op, ClassOther, nilContext)
	}
	return nil
}

// readyFor is ready of a call that calls fn.
func (c *Comm) readyFor(op string, ctx context.Context, fn func(context.Context) error) error {
	if err := c.ready(op, ctx); err != nil {
		return err
	}
	if fn == nil {
		return mpiErrorf(op, ClassOther, nilFunction)
	}
	return nil
}

const nilFunction = "nil function, expected one to call"

// there panics if c is nil, where no error can be returned.
func (c *Comm) there(call string) {
	if c == nil {
		panic("mpicx: " + call + ": " + nilComm)
	}
}

func jobOver(op string, c *Comm) error {
	return mpiErrorf(op, ClassComm, "the job of %s is over, expected a call before its Run has returned or Finalize been called", c.name)
}

// nowhere returns the future of an operation on a nil communicator.
func nowhere[T any](op string) *future.Future[T] {
	return future.Failed[T](mpiErrorf(op, ClassComm, nilComm))
}

func mpiErrorf(op string, class Class, format string, args ...any) *MPIError {
	return &MPIError{Op: op, Class: class, Text: fmt.Sprintf(format, args...)}
}

// A PanicError is what Run returns for a rank that panicked, once its peers have
// been told.
type PanicError struct {
	Rank  int    // in the world
	Value any    // what it panicked with
	Stack []byte // of its goroutine at the panic, as runtime/debug.Stack prints it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("mpicx: rank %d panicked: %v\n\n%s", e.Rank, e.Value, e.Stack)
}

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit is what Run returns for a rank that ended by runtime.Goexit, as
// t.FailNow does it.
var ErrGoexit = errors.New("mpicx: the rank's function left by runtime.Goexit")

// Throw panics with err as a future.Thrown, for the nearest Try of this goroutine to take
// back: what throw is to C++. In a goroutine that Try has not called, defer future.Catch
// first. A nil err throws nothing.
func Throw(err error) {
	if err != nil {
		panic(future.Thrown{Err: err})
	}
}

// What operations under ErrorsReturn report; only the ULFM backend has them.
var (
	ErrRevoked           = errors.New("mpicx: communicator revoked")                            // MPI_ERR_REVOKED
	ErrProcFailedPending = errors.New("mpicx: a possible sender has died; the receive goes on") // MPI_ERR_PROC_FAILED_PENDING
)

// A ProcFailedError says that processes which the operation involves have died
// (MPI_ERR_PROC_FAILED). Agree and the making of communicators report it at all
// ranks alike, other operations where it matters.
type ProcFailedError struct {
	Ranks []int // some of them, in the communicator of the operation
	Flag  int   // of Agree: what was agreed on all the same
}

func (e *ProcFailedError) Error() string {
	return fmt.Sprintf("mpicx: processes of ranks %v have died", e.Ranks)
}
