package hook

import (
	"errors"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/observe"
)

// ErrUnseen is the failure of a rank whose process has died, where the others do not survive that.
var ErrUnseen = errors.New("its process has died; with -tags ulfm the others could continue without it")

// A Rank is the inside of a *mpicx.Comm and of its rank.
type Rank interface {
	// Die marks the rank as dead: from now on its operations reach no other rank.
	Die()
	// Dead says whether the rank has died.
	Dead() bool
	// Mortal says whether peers, or a launcher, would see the rank die.
	Mortal() bool
	// Abort corrupts the communicator as if its rank had unwound with err, even if the rank is
	// dead, so that every Wait on it ends.
	Abort(err error)
	// Machine returns the number of the rank's machine, the same for all ranks there.
	Machine() int

	// Progress returns a text that changes when the rank begins or ends an operation.
	Progress() string
	// Blocked returns what mpicx.Comm.Blocked returns, for all communicators of the rank.
	Blocked() []string
	// Where returns what mpicx.Comm.Diagnose reports about the rank.
	Where() string
	// Calls returns the lines about collective calls with which a Diagnosis of the rank's first
	// communicator ends.
	Calls() []string
	// Happened reports an event to the observer of the rank, with a text that describes it.
	Happened(kind observe.Kind, text string)

	// Bare takes the error channel out of the Waits on the communicator, to measure its cost.
	Bare()
	// Begin begins a Background of the given number of exchanges, in the order of the program's
	// collective operations. If it is refused, Begin returns nil, and the future has the error.
	Begin(name string, exchanges int) (Background, *future.Future[struct{}])
	// BeginCount is Begin of an operation that ends with a number, by the function that it returns
	// instead of by End. With no exchanges it is an operation of this rank alone.
	BeginCount(name string, exchanges int) (Background, *future.Future[int], func(int, error))
}

// Of returns the inside of a *mpicx.Comm.
func Of(comm Holder) Rank { return comm.inside() }

// A Holder is a *mpicx.Comm: it embeds Hidden.
type Holder interface{ inside() Rank }

// Hidden is a Rank in a type that embeds it. Nothing in it has an exported name.
type Hidden struct{ rank Rank }

// Hide hides a Rank.
func Hide(r Rank) Hidden { return Hidden{r} }

func (h *Hidden) inside() Rank { return h.rank }
