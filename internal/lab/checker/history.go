package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// history is what all ranks of one run did, and what they were told.
type history struct {
	clock atomic.Int64

	mu       sync.Mutex
	raised   map[report][]raise // by the report that peers get; rarely more than one
	events   [][]event          // by rank of the world
	units    map[string]map[int]string
	failures []string
	gone     map[int]bool // ranks whose program has ended: with the backend ulfm they may count as dead
	dead     map[int]bool // ranks of the world whose process was ended

	planned  bool // more ranks may die, by a plan
	inverted bool // a Try is inside one on a derived communicator: which of their errors it is depends on the order
	returns  bool // ErrorsReturn is set
	several  bool // ranks have several goroutines: which errors are in a verdict depends on which comes first
	rescues  int  // number of spares that were taken

	stops     []asked
	stopCalls map[string]stopCall

	// Under ErrorsReturn with the backend ulfm:
	byHand  bool
	revoked map[string]bool // names of communicators that a rank has revoked
	scoped  map[string]bool // names of communicators that were used by Try, TryAll or Guard
	guarded map[string]bool // names of communicators that were used by Guard
	claims  []claim

	// By communicator and rank, as a report:
	givenUp sync.Map // whether it was because of an error that the rank has released the communicator
	expects sync.Map // whether the rank has received what nobody sends
}

// ends is in the message that peers get when a rank's program ends.
const ends = "program ends: "

// revokedBy is in the message that peers get from Revoke under ErrorsPropagate.
const revokedBy = "revoked by rank "

// report is a failure as peers see it: its communicator, the rank there, the text.
type report struct {
	comm    string
	rank    int
	message string
	corrupt bool
}

// raise is an error that a rank raised on a communicator.
type raise struct {
	comm  string
	rank  int // of the communicator
	world int
	what  report
	at    int64
	when  time.Time // fake
	// certain: all ranks will be told of it, unless a corruption comes first.
	certain bool
	members []int // of the communicator, in the world
	// never: the rank has raised it when it had been told of an error that its scope had (T2, T3).
	never bool
	place []string // the Trys of the communicator around, the outermost first
}

// An event is one call of the public interface at one rank that may tell it of an error.
type event struct {
	what       string
	comm       *inst
	begin, end int64
	err        error
	of         string // the communicator whose verdict err is; "": err is no verdict
	key        string // of that verdict
	// quiet: by the rules, a rank in this call takes part in resolving errors only if the call
	// reports them.
	quiet bool
	// closed: the rank had closed the communicator of the verdict.
	closed bool
	// pends: the call receives from any rank.
	pends bool

	in      *running // the innermost scope around the call
	owner   *running // the Try whose error it is; nil: the rank has not come to it
	beside  bool     // the call is in a goroutine of its own
	listens bool     // which may outlive the scope
	outside bool     // the context is from outside of all scopes
	scope   bool     // the call is the Try or TryAll in
}

func newHistory(n int) *history {
	return &history{
		raised: make(map[report][]raise), events: make([][]event, n), units: make(map[string]map[int]string),
		gone: make(map[int]bool), dead: make(map[int]bool), revoked: make(map[string]bool), scoped: make(map[string]bool), guarded: make(map[string]bool),
		stopCalls: make(map[string]stopCall),
	}
}

func (h *history) died(rank int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead[rank] = true
}

func (h *history) leaves(rank int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[rank] = true
}

// taken counts a spare that is taken, and returns how many were taken before.
func (h *history) taken() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rescues++
	return h.rescues - 1
}

// enlist adds a communicator's name to one of the history's sets.
func (h *history) enlist(set map[string]bool, c *inst) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set[c.name] = true
}

func (h *history) now() int64 { return h.clock.Add(1) }

func (h *history) failf(rule, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = append(h.failures, rule+": "+fmt.Sprintf(format, args...))
}

// raise records that a rank is about to raise an error.
func (h *history) raise(c *inst, rank int, message string, corrupt, certain bool) {
	h.raiseIn(nil, c, rank, message, corrupt, certain)
}

// raiseIn is raise inside a scope.
func (h *history) raiseIn(in *running, c *inst, rank int, message string, corrupt, certain bool) {
	if len(message) > mpicx.MaxMessage {
		message = message[:mpicx.MaxMessage-8] // the library cuts it: only this part is compared
	}
	r := raise{c.name, c.rankOf(rank), rank, report{c.name, c.rankOf(rank), message, corrupt}, h.now(), time.Now(), certain && !h.several, c.members, false, in.place(c.name)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.raised[r.what] = append(h.raised[r.what], r)
}

// unsent notes that an error of the rank, which a Try had already when the rank raised its own, is in no
// verdict.
func (h *history) unsent(c *inst, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, all := range h.raised {
		if what.comm == c.name && what.rank == c.Rank() && strings.HasPrefix(message, what.message) {
			all[len(all)-1].certain = false
		}
	}
}

// owner returns the communicator of a verdict: a candidate, or one that a candidate is derived from. It returns
// nil if it is none of these, or if nobody has raised the verdict's failures there.
func (h *history) owner(err error, candidates ...*inst) *inst {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range candidates {
		for a := c; a != nil; a = a.parent {
			if !a.isOwner(err) {
				continue
			}
			corrupt := isCorruption(err)
			unknown := func(f mpicx.Failure) bool {
				return len(f.Message) < mpicx.MaxMessage-8 && !h.hasRaised(a, f, corrupt) && !isPassedOn(f.Message) && !((corrupt || h.returns) && h.isForsaken(a, f.Rank, f.Message))
			}
			if slices.ContainsFunc(failuresOf(err), unknown) {
				return nil
			}
			return a
		}
	}
	return nil
}

// hasRaised reports whether a failure was raised on c. A rank that ends corrupts the world or, if that is corrupted
// already, the communicators derived from it, of which its program may have no value.
func (h *history) hasRaised(c *inst, f mpicx.Failure, corrupt bool) bool {
	if f.Rank >= len(c.members) {
		return h.raises(c.name, f, corrupt) != nil
	}
	rank := c.members[f.Rank]
	for a := c; a != nil; a = a.parent {
		if f.Rank = a.rankOf(rank); h.raises(a.name, f, corrupt) != nil {
			return true
		}
		if !strings.HasPrefix(f.Message, ends) {
			break
		}
	}
	return false
}

// raises returns what has raised a failure. A function may have returned before its rank has come to the
// scope in which another error was raised: its message is followed by that of the other error.
func (h *history) raises(comm string, f mpicx.Failure, corrupt bool) []raise {
	if all := h.raised[report{comm, f.Rank, f.Message, corrupt}]; all != nil || !h.several {
		return all
	}
	for what, all := range h.raised {
		rest, is := strings.CutPrefix(f.Message, what.message)
		if is && what.comm == comm && what.rank == f.Rank && what.corrupt == corrupt && strings.Contains(rest, ": mpicx: ") {
			return all
		}
	}
	return nil
}

// isForsaken reports whether rank by of c rightly says that its operation needs a rank which has released c: that one
// has done so because of an error, or the operation is a receive of what nobody sends.
func (h *history) isForsaken(c *inst, by int, message string) bool {
	_, expects := h.expects.Load(report{comm: c.name, rank: by})
	return slices.ContainsFunc(c.members, func(world int) bool {
		rank := c.rankOf(world)
		failed, is := h.givenUp.Load(report{comm: c.name, rank: rank})
		return is && (failed.(bool) || expects) && released.MatchString(message) &&
			(strings.Contains(message, "every other rank of ") || strings.Contains(message, fmt.Sprintf(": rank %d has ", rank)))
	})
}

// released matches what is said of a rank that has released a communicator, in an *MPIError.
var released = regexp.MustCompile(`(rank \d+ has released .*|every other rank of .* has returned or released it)$`)

// isReturned reports whether an operation ended because it needs a rank that has returned; with the
// ULFM backend perhaps one that was begun before its communicator was closed.
func isReturned(err error) bool {
	m, ok := err.(*mpicx.MPIError)
	return ok && (strings.HasSuffix(m.Text, " has returned") || strings.HasSuffix(m.Text, " returned, or released the communicator") || strings.Contains(m.Text, " has died, or returned, and "))
}

// isPassedOn reports whether a failure comes from another communicator's verdict that ended a
// TryAll: a rank that waits there for the others leaves with this failure, which the program does
// not see.
func isPassedOn(message string) bool {
	return strings.HasPrefix(message, "mpicx: error propagated from ") || strings.HasPrefix(message, "mpicx: communicator corrupted") ||
		strings.Contains(message, "in a Try or Guard of ") && strings.HasSuffix(message, ": mpicx: communicator revoked")
}

// classify determines what err, returned by a call on c, is. An error that the public interface
// does not promise is a failure of the check.
func (h *history) classify(e *event, candidates []*inst, deadline bool, allowed ...error) {
	err := bare(e.err)
	if e.scope && h.several { // an own error that wraps the verdict
		err = verdictOf(err)
	}
	switch v := err.(type) {
	case nil, *mpicx.StopError:
		return
	case *mpicx.CommCorruptedError:
		h.attribute(e, v, v.Failures, v.Dead, candidates)
		h.automatic(e, candidates)
		e.key = "corrupted " + e.key
		return
	case *mpicx.PropagatedError:
		h.attribute(e, v, v.Failures, nil, candidates)
		return
	case *mpicx.SpareError:
		if !strings.HasPrefix(e.what, "Replace on ") || len(v.Places) <= v.Spares {
			h.failf("R1", "%s returns %v", e.what, e.err)
		}
		return
	}
	switch {
	case deadline && errors.Is(e.err, context.DeadlineExceeded):
	case isReturned(e.err): // the rank that would send has returned
	case (h.returns || e.comm.closed.Load()) && h.isForsaken(e.comm, e.comm.Rank(), e.err.Error()):
	case (h.byHand || e.comm.closed.Load()) && h.ofDeaths(e, candidates):
	default:
		for _, a := range allowed {
			if errors.Is(e.err, a) {
				return
			}
		}
		h.failf("F2", "%q (%T) is no error that the face promises to return, and %s does", e.err, e.err, e.what)
	}
}

func (h *history) attribute(e *event, verdict error, failures []mpicx.Failure, dead []int, candidates []*inst) {
	e.key = fmt.Sprint(failures)
	if len(dead) > 0 {
		e.key += fmt.Sprint(" dead ", dead)
	}
	if len(failures) == 0 && len(dead) == 0 {
		h.failf("P2", "%s returns a verdict without failures: %v", e.what, e.err)
	}
	if c := h.owner(verdict, candidates...); c != nil {
		e.of = c.name
	} else {
		h.failf("P2", "%s returns a verdict with failures that nobody raised as they are there: %v", e.what, e.err)
	}
}
