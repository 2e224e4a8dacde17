package transport

import (
	"fmt"

	"github.com/mpicx/go-mpicx/internal/signature"
)

// DeadError is the error of a request that needs a process that has died. Rank is AnySource if all
// others have died.
type DeadError struct{ Rank int }

func (e *DeadError) Error() string {
	if e.Rank == AnySource {
		return "the processes of all other ranks of the communicator have died"
	}
	return fmt.Sprintf("the process of rank %d has died", e.Rank)
}

// LeftError is the error of a request that needs a rank whose program has ended or, if Released is
// set, has released the communicator. Rank is AnySource if all others have done so or have died,
// and Released then says that one of them at least has released the communicator.
type LeftError struct {
	Rank     int
	Released bool
}

func (e *LeftError) Error() string {
	switch {
	case e.Rank == AnySource && e.Released:
		return "every other rank of the communicator has returned or released it"
	case e.Rank == AnySource:
		return "every other rank of the communicator has returned"
	case e.Released:
		return fmt.Sprintf("rank %d has released the communicator", e.Rank)
	}
	return fmt.Sprintf("rank %d has returned", e.Rank)
}

// TruncateError is the error of a receive whose message is longer than its buffer. The message is
// lost, and nothing was written past the buffer.
type TruncateError struct {
	Status Status
	Room   int // bytes
}

func (e *TruncateError) Error() string {
	return fmt.Sprintf("message of %d bytes from rank %d with tag %d is longer than the buffer of %d bytes",
		e.Status.Bytes, e.Status.Source, e.Status.Tag, e.Room)
}

// MismatchError is the error of a rank that has made another collective call than a peer in the
// same place.
type MismatchError struct {
	Number      int // of the call in its epoch
	Own, Theirs signature.Word
	Source      int // theirs
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("collective call %d is %v here, and %v at rank %d", e.Number, e.Own, e.Theirs, e.Source)
}

// LibraryError is an error of the library below a transport.
type LibraryError struct {
	Call  string // the library's function, or what it was called for
	Class int    // mpicx.Class
	Text  string // the library's own text
}

func (e *LibraryError) Error() string { return e.Call + ": " + e.Text }

// JobEndedError says that a process has died, and with it the job, which does not survive deaths.
type JobEndedError struct {
	Process int // of the job
}

func (e *JobEndedError) Error() string {
	return fmt.Sprintf("process %d has died: this program needs all of them; if it is also built with -tags ulfm, it can continue without it", e.Process)
}

type constError string

func (e constError) Error() string { return string(e) }

// ErrCancelled is the error of a request that Cancel ended.
const ErrCancelled = constError("cancelled")

// ErrFenced is the error of all requests of a process that lives and that others have declared
// dead.
const ErrFenced = constError("other processes have declared this one dead, and continue without it")

// ErrNoQuorum is the ErrFenced of a process on a side of the network without a majority.
const ErrNoQuorum = quorumError("this process is on a side of the network without a majority of all processes")

type quorumError string

func (e quorumError) Error() string        { return string(e) }
func (e quorumError) Is(target error) bool { return target == ErrFenced }

// ErrDied is the error of the requests of a process that has died itself.
const ErrDied = constError("this process has died")
