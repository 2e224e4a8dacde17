package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// history is what all ranks of one run did and were told.
type history struct {
	clock atomic.Int64

	mu       sync.Mutex
	raised   map[report][]raise // by what peers are told of it; rarely more than one
	events   [][]event          // by rank of the world
	units    map[string]map[int]string
	failures []string
	gone     map[int]bool // ranks whose program has ended: with the backend ulfm they may count as dead
	dead     map[int]bool // ranks of the world whose process was ended

	planned bool // more may die, by a plan

	// Under ErrorsReturn with the backend ulfm:
	byHand  bool
	revoked map[string]bool // communicators, by their names, that a rank has revoked
	scoped  map[string]bool // those that were used by Try, TryAll or Guard
	claims  []claim
}

// ends is in what a rank's end tells its peers.
const ends = "program ends: "

// revokedBy is in what Revoke tells the peers under ErrorsPropagate.
const revokedBy = "revoked by rank "

// report is a failure as peers see it: of a communicator, its rank there, the text.
type report struct {
	comm    string
	rank    int
	message string
	corrupt bool
}

// raise is an error that a rank of the world raised on a communicator.
type raise struct {
	comm  string
	rank  int // of the communicator
	world int
	what  report
	at    int64
	when  time.Time // fake
	// certain: all ranks are told of it, unless a corruption comes first.
	certain bool
	members []int // of the communicator, in the world
}

// An event is one call of the face at one rank that may tell it of an error.
type event struct {
	what       string
	comm       *inst
	begin, end int64
	err        error
	of         string // the communicator whose verdict err is; "": it is none
	key        string // of that verdict
	// quiet: by the rules, a rank in it takes part in resolving errors only if the
	// call reports them.
	quiet bool
	// closed: of the communicator that the verdict is of, the rank had been told no more.
	closed bool
	// pends: it receives from anybody.
	pends bool
}

func newHistory(n int) *history {
	return &history{
		raised: make(map[report][]raise), events: make([][]event, n), units: make(map[string]map[int]string),
		gone: make(map[int]bool), dead: make(map[int]bool), revoked: make(map[string]bool), scoped: make(map[string]bool),
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

// enlist puts a communicator's name into a set of the history.
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

// raise notes that a rank is about to raise an error.
func (h *history) raise(c *inst, rank int, message string, corrupt, certain bool) {
	if len(message) > mpicx.MaxMessage {
		message = message[:mpicx.MaxMessage-8] // the library cuts it: compared as far as this
	}
	r := raise{c.name, c.rankOf(rank), rank, report{c.name, c.rankOf(rank), message, corrupt}, h.now(), time.Now(), certain, c.members}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.raised[r.what] = append(h.raised[r.what], r)
	if strings.HasSuffix(message, context.Canceled.Error()) { // perhaps with the verdict that has ended the context
		what := report{c.name, c.rankOf(rank), passedOn, corrupt}
		h.raised[what] = append(h.raised[what], r)
	}
}

// passedOn stands for what isPassedOn.
const passedOn = "passed on"

// owner returns the communicator that the failures of a verdict were raised on: one
// of candidates, or one that these are derived from. If several are possible, because a
// rank left several Guards by one error, it does not know.
func (h *history) owner(failures []mpicx.Failure, corrupt bool, candidates ...*inst) (owner *inst, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, lenient := range []bool{false, true} {
		var possible []*inst
		for _, c := range candidates {
			for a := c; a != nil; a = a.parent {
				unknown := func(f mpicx.Failure) bool {
					return len(f.Message) < mpicx.MaxMessage-8 && h.raised[report{a.name, f.Rank, f.Message, corrupt}] == nil &&
						!(isPassedOn(f.Message) && (lenient || h.raised[report{a.name, f.Rank, passedOn, corrupt}] != nil))
				}
				if !slices.Contains(possible, a) && !slices.ContainsFunc(failures, unknown) {
					possible = append(possible, a)
				}
			}
		}
		switch {
		case len(possible) == 1:
			return possible[0], true
		case len(possible) > 1:
			return nil, true
		}
	}
	return nil, false
}

// isReturned says whether an operation ended because it needs a rank that has returned.
func isReturned(err error) bool {
	m, ok := err.(*mpicx.MPIError)
	return ok && strings.HasSuffix(m.Text, " has returned")
}

// isPassedOn says whether a failure comes from another communicator's verdict that ended a
// TryAll: a rank that waits in it for the others leaves it with this failure, which the program
// does not see.
func isPassedOn(message string) bool {
	return strings.HasPrefix(message, "mpicx: error propagated from ") || strings.HasPrefix(message, "mpicx: communicator corrupted") ||
		strings.Contains(message, "in a Try or Guard of ") && strings.HasSuffix(message, ": mpicx: communicator revoked")
}

// classify finds out what err, from a call on c, is. An error that the face does not
// promise is a failure.
func (h *history) classify(e *event, candidates []*inst, deadline bool, allowed ...error) {
	switch v := bare(e.err).(type) {
	case nil:
		return
	case *mpicx.CommCorruptedError:
		h.attribute(e, v.Failures, v.Dead, true, candidates)
		h.automatic(e, candidates)
		if e.key = "corrupted " + e.key; strings.Contains(e.key, ends) {
			// A rank that ends corrupts the world or, if that is of no use, what is derived
			// from it: which one this is of, it does not say.
			e.of = ""
		}
		return
	case *mpicx.PropagatedError:
		h.attribute(e, v.Failures, nil, false, candidates)
		return
	}
	switch {
	case deadline && errors.Is(e.err, context.DeadlineExceeded):
	case isReturned(e.err): // the rank that was to send
	case h.byHand && h.ofDeaths(e, candidates):
	default:
		for _, a := range allowed {
			if errors.Is(e.err, a) {
				return
			}
		}
		h.failf("F2", "%q (%T) is no error that the face promises to return, and %s does", e.err, e.err, e.what)
	}
}

func (h *history) attribute(e *event, failures []mpicx.Failure, dead []int, corrupt bool, candidates []*inst) {
	e.key = fmt.Sprint(failures)
	if len(dead) > 0 {
		e.key += fmt.Sprint(" dead ", dead)
	}
	if len(failures) == 0 {
		if len(dead) == 0 {
			h.failf("P2", "%s returns a verdict without failures: %v", e.what, e.err)
		}
		return // of which communicator, it does not say
	}
	switch c, known := h.owner(failures, corrupt, candidates...); {
	case c != nil:
		e.of = c.name
	case !known:
		h.failf("P2", "%s returns a verdict with failures that nobody raised as they are there: %v", e.what, e.err)
	}
}
