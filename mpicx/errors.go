package mpicx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A PropagatedError says that ranks signalled errors. Every rank of the communicator gets it,
// with the same Failures (paper section III-A, Propagated_exception). The communicator keeps
// working, and no message from before the error is received any more. All ranks have the same
// information, so they can make the same decision about it.
type PropagatedError struct {
	// Failures are those of all ranks that signalled before they knew of the
	// others', by rank. Ranks of one process share the slice: don't change it.
	Failures []Failure

	verdict
}

func (e *PropagatedError) Error() string {
	return propagatedFrom + list(e.Failures)
}

const propagatedFrom = "mpicx: error propagated from "

// Is says whether a failure is the registered error target: see RegisterError.
func (e *PropagatedError) Is(target error) bool { return areSentinel(e.Failures, target) }

// As finds an error of a registered type: see RegisterErrorType.
func (e *PropagatedError) As(target any) bool { return e.findType(e.Failures, target) }

// Format prints, for %+v, a line for each failure with its origin and time, and
// at the rank that raised one its stack.
func (e *PropagatedError) Format(s fmt.State, verb rune) { format(s, verb, e, e.Failures, e.causes) }

// A CommCorruptedError says that a rank left Guard by an error or a panic, or that a process
// died. The communicator is broken for good, at every rank (paper section III-A,
// Corrupted_comm_exception).
//
// With -tags ulfm, Dead also has ranks whose programs have ended, because Shrink leaves them out. A
// rank that is in Failures too has ended by that error, or has died after it. If another rank needs
// a rank that has returned, or whose error could not be told any more, that rank is in Dead alone,
// as if its process had died. The text says of those of which this rank knows it that they have
// returned.
type CommCorruptedError struct {
	Failures []Failure // who unwound, by rank; ranks of one process share the slice
	Dead     []int     // which processes died, in ascending order

	verdict
	unheard []error // what this rank had signalled in the same round: C2 keeps it from the others
}

func (e *CommCorruptedError) Error() string {
	s := "mpicx: communicator corrupted"
	if len(e.Failures) > 0 {
		s += " by " + list(e.Failures)
	}
	dead := slices.DeleteFunc(slices.Clone(e.Dead), func(r int) bool {
		return slices.ContainsFunc(e.Failures, func(f Failure) bool { return f.Rank == r })
	})
	var returned []int
	derived := e.of != nil && e.of.Comm.Parent() != nil
	if e.of != nil { // else a program has made the error
		dead, returned = e.of.Comm.Owner.(member).whoReturned(dead)
	}
	if len(dead) > 0 {
		s += fmt.Sprintf("; dead: %v", dead)
	}
	if len(returned) > 0 {
		s += "; " + haveReturned(returned, derived)
	}
	if len(e.Failures)+len(e.Dead) == 0 && e.causes != nil {
		s += fmt.Sprintf(": %v", e.causes)
	}
	return s
}

// Is says whether a failure is the registered error target: see RegisterError.
func (e *CommCorruptedError) Is(target error) bool { return areSentinel(e.Failures, target) }

// As finds an error of a registered type: see RegisterErrorType.
func (e *CommCorruptedError) As(target any) bool { return e.findType(e.Failures, target) }

// Reason returns how the process of a rank has ended, as mpicxrun reports it: "signal: killed", or
// "exit status 3". It returns "" if the process has not ended, and at once if the launcher is
// another one, or ranks are goroutines. mpicxrun learns of a death later than the ranks, because
// the system first frees the process's memory. Reason waits for that, or until ctx ends; with a
// context that has ended it returns what is known. It is no field, because it may differ between
// ranks.
func (e *CommCorruptedError) Reason(ctx context.Context, rank int) string {
	if e.of == nil { // a program has made the error
		return ""
	}
	return e.of.Comm.Owner.(member).reason(ctx, rank)
}

// Format prints, for %+v, what [PropagatedError.Format] prints, and a line for each death whose
// reason is known.
func (e *CommCorruptedError) Format(s fmt.State, verb rune) {
	format(s, verb, e, e.Failures, e.causes)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range e.Dead {
		if why := e.Reason(now, r); why != "" && verb == 'v' && s.Flag('+') {
			fmt.Fprintf(s, "\n  rank %d has ended: %s", r, why)
		}
	}
}

func format(s fmt.State, verb rune, err error, failures []Failure, causes error) {
	text := err.Error()
	switch {
	case verb == 'q':
		text = fmt.Sprintf("%q", text)
	case verb == 'v' && s.Flag('+'):
		for _, f := range failures {
			text += fmt.Sprintf("\n  %v\n    at %s, %s", f, f.Origin, f.Time.Format("15:04:05.000000"))
			for what, value := range f.eachType() {
				if value == "" {
					text += "\n    not sent: " + what
				}
			}
		}
		if causes != nil {
			text += fmt.Sprintf("\n  here: %+v", causes)
		}
	}
	io.WriteString(s, text) //nolint:errcheck // as fmt does
}

// verdict is common to the two errors that all ranks have.
type verdict struct {
	common               //nolint:unused // its method marks a waiting.Common error
	of     *ledger.Error // at this rank; nil: it is of another process
	causes error         // what this rank itself raised
}

// member is a *Comm, as far as an error needs it.
type member interface {
	// whoReturned divides ranks that are gone into those that have died, and those whose programs
	// are known to have returned.
	whoReturned(gone []int) (dead, returned []int)
	isSelf(rank int) bool
	// reason is Reason of transport.Driver.
	reason(ctx context.Context, rank int) string
}

type common = waiting.CommonError //nolint:unused // the field's name, which is not exported

// Unwrap returns the errors that this rank itself signalled, so that errors.Is finds the cause
// where it occurred. At other ranks it returns nil.
func (v *verdict) Unwrap() error { return v.causes }

// findType is As of an error with these failures. What this rank has raised itself is found as it
// is.
func (v *verdict) findType(failures []Failure, target any) bool {
	i := findType(failures, target)
	if i >= 0 && v.of != nil && v.of.Comm.Owner.(member).isSelf(failures[i].Rank) {
		errors.As(v.causes, target)
	}
	return i >= 0
}

// face sets the error that the program gets for a verdict, and the place where it was raised.
func face(e *ledger.Error) {
	causes := make([]error, len(e.Own))
	var unheard []error
	for i, r := range e.Own {
		causes[i] = r.Cause
		if !r.Corrupt && !hasType[*ProcFailedError](r.Cause) {
			unheard = append(unheard, r.Cause)
		}
	}
	v := verdict{of: e, causes: withoutVerdicts(together(causes))}
	m := meaningOf(e.Verdict)
	if e.Corrupt() {
		e.Face = &CommCorruptedError{m.failures, e.Verdict.Dead, v, unheard}
		return
	}
	e.Era, e.Place = m.era, m.place
	e.Face = &PropagatedError{Failures: m.expanded(e), verdict: v}
}

// with returns err together with own, an error of this rank that came after it. The other ranks
// have err alone. If own wraps err already, with returns own.
func with(err, own error) error {
	if err == nil || own == nil || errors.Is(err, own) {
		return err
	}
	switch e := err.(type) {
	case *PropagatedError:
		if p, ok := errors.AsType[*PropagatedError](own); ok && p.of == e.of {
			return own
		}
		both := *e
		both.add(own)
		return &both
	case *CommCorruptedError:
		if k, ok := errors.AsType[*CommCorruptedError](own); ok && k.of == e.of {
			return own
		}
		both := *e
		both.add(own)
		return &both
	}
	own = withoutVerdicts(own)
	if _, other := own.(*hidden); !other && errors.Is(own, err) {
		return own
	}
	return fmt.Errorf("%w: %w", err, own)
}

func (v *verdict) add(own error) {
	own = withoutVerdicts(own)
	if v.causes != nil {
		own = errors.Join(v.causes, own)
	}
	v.causes = own
}

// together is errors.Join that leaves one error as it is, for %+v.
func together(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// withoutVerdicts returns err so that errors.As finds no verdict in it, and no StopError. If a rank
// unwinds because of a *PropagatedError, errors.As must not find that in the corruption that
// follows, because at the other ranks it does not.
func withoutVerdicts(err error) error {
	if hasType[*PropagatedError](err) || hasType[*CommCorruptedError](err) || hasType[*StopError](err) {
		return &hidden{err}
	}
	return err
}

// hidden wraps a verdict so that errors.As does not find it.
type hidden struct{ err error }

func (h *hidden) Error() string        { return h.err.Error() }
func (h *hidden) Is(target error) bool { return errors.Is(h.err, target) }

func (h *hidden) Format(s fmt.State, verb rune) {
	fmt.Fprintf(s, fmt.FormatString(s, verb), h.err)
}

func (h *hidden) As(target any) bool {
	switch target.(type) {
	case **PropagatedError, **CommCorruptedError, **StopError, *waiting.Common:
		return false
	}
	return errors.As(h.err, target)
}

// A StopError says that somebody has asked for a stop. Stopping returns it, in the same call at all
// ranks of the communicator. Each then saves its state, and returns the error from Try, Guard,
// recovery.Run and Run: they return it as it is, wrapped or not, and tell no other rank, if the
// request holds for their communicator. The communicator keeps working.
type StopError struct {
	Rank   int       // who asked: the rank in the world; of several the lowest
	Signal os.Signal // the signal that this rank got; nil: its program called Stop
	Why    string    // the text of the error that Stop was given, at most 224 bytes of it

	common         //nolint:unused // its method marks a waiting.Common error
	elsewhere bool // another rank prints it in Exit
}

func (e *StopError) Error() string {
	if e.Signal != nil {
		return fmt.Sprintf("mpicx: stopped by a signal at rank %d: %v", e.Rank, e.Signal)
	}
	return fmt.Sprintf("mpicx: stopped by rank %d: %s", e.Rank, e.Why)
}

// stopIn returns the StopError that err is or wraps. An error that joins it with others is an error
// of its own: the other ranks do not have those.
func stopIn(err error) *StopError {
	switch e := err.(type) {
	case *StopError:
		return e
	case waiting.Common, *PanicError, *future.Panicked:
		return nil
	case interface{ Unwrap() error }:
		return stopIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		if all := e.Unwrap(); len(all) == 1 {
			return stopIn(all[0])
		}
	}
	return nil
}

// A PanicError is what Run returns for a rank that panicked. Its peers have been told by then.
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

// ErrGoexit is what Run returns for a rank that ended by runtime.Goexit, which t.FailNow calls.
var ErrGoexit = errors.New("mpicx: the rank's function left by runtime.Goexit")

// errUnwinding stands for the error of a function that has not returned.
var errUnwinding = errors.New("mpicx: unwinding")

// Errors of operations under ErrorsReturn. Only the ULFM backend has them.
var (
	ErrRevoked           = errors.New("mpicx: communicator revoked")                                     // MPI_ERR_REVOKED
	ErrProcFailedPending = errors.New("mpicx: a possible sender has died; the receive is still pending") // MPI_ERR_PROC_FAILED_PENDING
)

// ErrFenced is what every Wait, and Run, return at a process that lives but has been declared dead:
// its machine was silent for longer than the detector waits, and the other ranks no longer count on
// it. Test for it with errors.Is. The process cannot come back. It should save the data of which
// it has the only copy, and exit.
//
// A process that is stopped, or computes without a Wait, gets no error, and could still write
// files. On Linux the processes of its machine that are not declared dead themselves kill it, if it
// has not returned from Run within a period of the detector.
var ErrFenced error = transport.ErrFenced

// ErrNoQuorum is what a process gets that knows at most half of the job's processes to be
// alive, where a quorum is asked for (see Ring and Ping). It wraps ErrFenced.
var ErrNoQuorum error = transport.ErrNoQuorum

// A ProcFailedError says that processes have died which the operation needs
// (MPI_ERR_PROC_FAILED). Agree, and operations that make communicators, report it at all ranks.
// Other operations report it only at ranks where they need the dead.
type ProcFailedError struct {
	Ranks []int // some of them, in the communicator of the operation
	Flag  int   // of Agree: the value that was agreed on nevertheless

	returned []int // those of Ranks whose programs are known to have returned
	derived  bool  // or that may have released the communicator, which is not the world
}

func (e *ProcFailedError) Error() string {
	var parts []string
	dead := slices.DeleteFunc(slices.Clone(e.Ranks), func(r int) bool { return slices.Contains(e.returned, r) })
	if len(dead) > 0 {
		parts = append(parts, fmt.Sprintf("processes of ranks %v have died", dead))
	}
	if len(e.returned) > 0 {
		parts = append(parts, haveReturned(e.returned, e.derived))
	}
	return "mpicx: " + strings.Join(parts, "; ")
}

// haveReturned returns "rank 3 has returned" or "ranks 0-2, 5 have returned". On a derived
// communicator they may have released that instead.
func haveReturned(ranks []int, derived bool) string {
	has, what := " have", " returned"
	if len(ranks) == 1 {
		has = " has"
	}
	if derived {
		what = " returned, or released the communicator"
	}
	return diagnosis.Name(ranks) + has + what
}

// A SpareError says that there were too few spares for Replace, or too few fresh ranks left to
// start. All ranks get it.
type SpareError struct {
	Places []int // the dead, in the communicator that was to be replaced
	Spares int   // how many living spares are not taken yet, or fresh ranks not started
}

func (e *SpareError) Error() string {
	return fmt.Sprintf("mpicx: Replace: %d processes have died, of ranks %v, and %d spares or fresh ranks are left, expected at least %d (WithSpares, WithRespawn)",
		len(e.Places), e.Places, e.Spares, len(e.Places))
}

// ranksError has the errors of several ranks.
type ranksError struct{ errs map[int]error } // by rank

// Error has a line for each different text. Causes come first, corruptions that ranks were
// told of last. A rank's own error that a corruption has kept from the others is a cause too.
func (e *ranksError) Error() string {
	var causes, told diagnosis.Groups
	for _, r := range slices.Sorted(maps.Keys(e.errs)) {
		err := e.errs[r]
		c, ok := errors.AsType[*CommCorruptedError](err)
		if !ok {
			causes.Add(r, err.Error())
			continue
		}
		for _, own := range c.unheard {
			causes.Add(r, own.Error())
		}
		told.Add(r, err.Error())
	}
	var lines []string
	for _, g := range append(causes.All, told.All...) {
		lines = append(lines, fmt.Sprintf("%s: %s", diagnosis.Name(g.Ranks), g.Text))
	}
	return strings.Join(lines, "\n")
}

func (e *ranksError) Unwrap() []error {
	var errs []error
	for _, r := range slices.Sorted(maps.Keys(e.errs)) {
		errs = append(errs, e.errs[r])
	}
	return errs
}

func hasType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// meansBroken says whether err means that a communicator is broken. Repairs work on it.
func meansBroken(err error) bool {
	return hasType[*CommCorruptedError](err) || errors.Is(err, ErrRevoked)
}

// meansDeath says whether err reports a death, or a revoke, which may follow one.
func meansDeath(err error) bool {
	return hasType[*ProcFailedError](err) || errors.Is(err, ErrRevoked)
}
