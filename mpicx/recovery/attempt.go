package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
)

// An Attempt is one call of fn at all ranks of a communicator. All its fields but Joined are
// the same at all ranks.
type Attempt struct {
	// Comm is the communicator to use. It is the one that Run was given, until that is repaired.
	Comm *mpicx.Comm

	// N is the number of attempts before this one: 0 in the first. In each of them fn was called
	// at all ranks that were there.
	N int

	// Cause is why there is another attempt; nil in the first. It is a *mpicx.PropagatedError, a
	// *mpicx.CommCorruptedError or mpicx.ErrRevoked. At the rank that failed errors.Is finds its
	// own error in it. A rescue gets it from the others.
	Cause error

	// Causes are the errors of all failed attempts of this Run, and of failed recoveries in
	// between, in order. Cause is the last. The repair of what a cause reports may itself be
	// interrupted by the next cause, so a program counts how many causes it has dealt with.
	Causes []error

	// Joined says that this process was not there in the first attempt: it is a rescue.
	Joined bool

	// Replaced are the ranks of Comm whose processes have joined since the first attempt,
	// ascending. The ranks that are new in Comm itself are Comm.Replaced.
	Replaced []int

	// Gone are the ranks whose places Shrink has left empty: ranks of the communicator that Run
	// was given, ascending.
	Gone []int

	// Store keeps checkpoints; nil without the option Checkpoint. It is on Comm, and has what the
	// ranks have saved in all earlier attempts. Fn protects its variables in every attempt; a
	// variable replaces the one that had its name. Run closes the store at its end.
	Store *checkpoint.Store

	run *run
}

// next returns the attempt that all ranks have agreed to make.
func (r *run) next() *Attempt {
	a := &Attempt{
		Comm: r.comm, N: r.begun - 1, Causes: slices.Clone(r.causes), Joined: r.joined,
		Replaced: slices.Clone(r.replaced), Gone: slices.Clone(r.gone), Store: r.kept, run: r,
	}
	if n := len(a.Causes); n > 0 {
		a.Cause = a.Causes[n-1]
		if r.log != nil {
			r.log.Info("recovery", "rank", r.comm.Rank(), "comm", r.comm.String(), "attempt", a.N, "cause", a.Cause.Error(), "replaced", a.Replaced, "gone", a.Gone)
		}
	}
	a.Comm.Mark(fmt.Sprint("attempt ", a.N))
	return a
}

// Place returns the rank that a rank of Comm had in the communicator that Run was given. For a
// rescue it is the rank whose place it has taken. It stays the same as long as the process
// lives, and is the rank itself as long as nobody is Gone.
func (a *Attempt) Place(rank int) int {
	for _, g := range a.Gone {
		if g <= rank {
			rank++
		}
	}
	return rank
}

// Stopping is Comm.Stopping: nil or, once somebody has asked for a stop, a *mpicx.StopError in the
// same call at all ranks. If fn saves and returns it, Run returns it at all ranks. All ranks call
// Stopping equally often in an attempt.
func (a *Attempt) Stopping(ctx context.Context) error { return a.Comm.Stopping(ctx) }

// GiveUp returns an error that ends the Run of a. If fn returns or throws it at one rank, all
// ranks return from Run with an error that wraps the *mpicx.PropagatedError with err. At each
// rank that has given up errors.Is finds its own err, even if another rank's error came first.
func (a *Attempt) GiveUp(err error) error {
	if err == nil {
		err = errors.New("no reason given")
	}
	return &givenUp{a.run, err.Error(), []error{err}}
}

// A givenUp is the error that GiveUp returns, and that Run returns in turn.
type givenUp struct {
	run  *run
	text string
	errs []error
}

func (g *givenUp) Error() string   { return g.text }
func (g *givenUp) Unwrap() []error { return g.errs }

// Is finds any givenUp of the same Run.
func (g *givenUp) Is(target error) bool {
	t, ok := target.(*givenUp)
	return ok && t.run == g.run
}
