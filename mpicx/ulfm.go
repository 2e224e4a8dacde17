package mpicx

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/future"
)

// User-level failure mitigation. The black channel sees no process die, so all
// of it says errors.ErrUnsupported, or that nobody died.

// An Errhandler says what a communicator does about processes that die.
type Errhandler int

const (
	// ErrorsPropagate has the first rank to meet a dead process tell all others,
	// which get a *CommCorruptedError.
	ErrorsPropagate Errhandler = iota
	// ErrorsReturn has operations that involve a dead process report that, and
	// nothing else happens by itself.
	ErrorsReturn
)

func unsupported(op string) *MPIError {
	e := mpiErrorf(op, ClassUnsupported, "backend %s can't, expected ulfm", Backend)
	e.err = errors.ErrUnsupported
	return e
}

// Revoke ends all operations on c, now and later, at every rank, but those that
// repair it (MPI_Comm_revoke). It is not collective, and permanent.
func (c *Comm) Revoke(context.Context) error { return unsupported("Revoke") }

// Revoked says whether c has been revoked (MPI_Comm_is_revoked).
func (c *Comm) Revoked() bool { return false }

// Agree is done at all living ranks with the same value: the bitwise AND of the
// flags of those that contributed (MPI_Comm_agree).
func (c *Comm) Agree(flag int) *future.Future[int] { return failed[int](c, unsupported("Agree")) }

// Shrink makes a communicator of the living ranks, in their order
// (MPI_Comm_shrink).
func (c *Comm) Shrink() *future.Future[*Comm] { return failed[*Comm](c, unsupported("Shrink")) }

// Failed returns the ranks that this one knows to be dead, in the order in which
// it learned of them (MPI_Comm_get_failed).
func (c *Comm) Failed() []int { return nil }

// AckFailed acknowledges the first n of Failed and returns how many are
// acknowledged (MPI_Comm_ack_failed).
func (c *Comm) AckFailed(n int) int { return 0 }

// SetErrhandler sets what c, and communicators that are derived from it later, do
// about processes that die (MPI_Comm_set_errhandler). The default is
// ErrorsPropagate. The black channel never sees one die.
func (c *Comm) SetErrhandler(h Errhandler) {}
