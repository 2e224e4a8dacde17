package mpicx

import (
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Class is the kind of an MPIError, in MPI's terms.
type Class int

// The classes that operations of this package report.
const ( // transport.LibraryError has these numbers, and internal/transport/mpi/shim.h this order
	ClassOther       Class = iota // MPI_ERR_OTHER: see the text
	ClassBuffer                   // MPI_ERR_BUFFER: buffers do not fit one another
	ClassCount                    // MPI_ERR_COUNT: a length is wrong
	ClassTag                      // MPI_ERR_TAG: no such tag
	ClassRank                     // MPI_ERR_RANK: no such rank
	ClassRoot                     // MPI_ERR_ROOT: no such root
	ClassOp                       // MPI_ERR_OP: the operation is not defined on the type
	ClassType                     // MPI_ERR_TYPE: the type has pointers or no encoding, or the message was sent as another
	ClassTruncate                 // MPI_ERR_TRUNCATE: the message is longer than the buffer
	ClassComm                     // MPI_ERR_COMM: the communicator is closed, or nil
	ClassUnsupported              // MPI_ERR_UNSUPPORTED_OPERATION: the error backend lacks the operation
)

var classNames = [...]string{
	ClassOther: "other", ClassBuffer: "buffer", ClassCount: "count", ClassTag: "tag", ClassRank: "rank", ClassRoot: "root",
	ClassOp: "op", ClassType: "type", ClassTruncate: "truncate", ClassComm: "comm", ClassUnsupported: "unsupported",
}

func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("Class(%d)", int(c))
	}
	return classNames[c]
}

// An MPIError is an error of one operation at one rank: a bad argument, a message that
// does not fit, or an error of the MPI library.
type MPIError struct {
	Op    string // "Send", "Allreduce", …
	Class Class
	Text  string // what was wrong, with the value, and what was expected

	err error
}

func (e *MPIError) Error() string { return fmt.Sprintf("mpicx: %s: %s", e.Op, e.Text) }

// ErrorCode returns the Class. If the error is signalled, it is the Code of the Failure that all
// ranks get.
func (e *MPIError) ErrorCode() int { return int(e.Class) }

// Unwrap returns the error behind it, if there is one: errors.ErrUnsupported
// for ClassUnsupported.
func (e *MPIError) Unwrap() error { return e.err }

func isClosedError(err error) bool {
	e, ok := err.(*MPIError)
	return ok && e.Class == ClassComm
}

func mpiErrorf(op string, class Class, format string, args ...any) *MPIError {
	return &MPIError{Op: op, Class: class, Text: fmt.Sprintf(format, args...)}
}

// mpiError returns err as an operation's error: verdicts as they are, and
// everything else as an *MPIError.
func mpiError(op string, err error) error {
	if err == nil || err == ErrRevoked || waiting.IsCommon(err) || hasType[*MPIError](err) || hasType[*future.Panicked](err) || hasType[*ProcFailedError](err) || hasType[*SpareError](err) {
		return ofOperation(op, err)
	}
	class := ClassOther
	if _, ok := errors.AsType[*element.Error](err); ok {
		class = ClassType
	} else if _, ok := errors.AsType[*transport.TruncateError](err); ok {
		class = ClassTruncate
	} else if _, ok := errors.AsType[*collective.LengthError](err); ok {
		class = ClassCount
	} else if l, ok := errors.AsType[*transport.LibraryError](err); ok {
		class = Class(l.Class)
	}
	return &MPIError{Op: op, Class: class, Text: err.Error(), err: err}
}

// classOf returns the class for the difference between two ranks' calls.
func classOf(e *transport.MismatchError) Class {
	switch a, b := e.Own.Call(), e.Theirs.Call(); {
	case a.Kind != b.Kind:
		return ClassOther
	case a.Op != b.Op:
		return ClassOp
	case a.Root != b.Root && !a.Kind.IsSpread():
		return ClassRoot
	case a.Root != b.Root || a.Count != b.Count:
		return ClassCount
	}
	return ClassType
}

// useOp is the Op of the error of every operation on a closed communicator. ofOperation
// replaces it by the operation.
const useOp = "use"

// ofOperation returns err, with op in the place of useOp.
func ofOperation(op string, err error) error {
	if e, ok := err.(*MPIError); ok && e.Op == useOp {
		return &MPIError{Op: op, Class: e.Class, Text: e.Text, err: e.err}
	}
	return err
}

const nilComm = "nil communicator (Split returns it for Undefined)"

const nilContext = "nil context, expected one that limits the wait"

const nilFunction = "nil function, expected one to call"

func jobOver(op, comm string) error {
	return mpiErrorf(op, ClassComm, "the job of %s is over, expected a call before Run has returned or Finalize is called", comm)
}

// unsupported returns the error of an operation that only the ULFM backend has. broken is the error
// that the communicator has, or nil. The text quotes it, but the error does not wrap it: a program
// that repairs its communicator after such an error would repeat this forever.
func unsupported(op string, broken error) *MPIError {
	e := mpiErrorf(op, ClassUnsupported, "it needs -tags ulfm, this program has the black channel")
	if broken != nil {
		e.Text += ": " + broken.Error()
	}
	e.err = errors.ErrUnsupported
	return e
}

// errLeftBehind is the error of an operation at a rank whose program has ended in the meantime.
// The other ranks count it as dead.
var errLeftBehind = errors.New("the program of this rank has ended, and the other ranks have continued without it")

// mismatch returns the error of an operation if other ranks have called another one in its
// place.
func mismatch(op string, call errchan.Calls, d *errchan.Decision) error {
	if d.Calls == call {
		return nil
	}
	return mpiErrorf(op, ClassOther, "the ranks call %v in the same place, expected all to call one", d.Calls)
}
