package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

// An outcome is how a run went. It is what -json prints.
type outcome struct {
	Name     string `json:"name"`
	Recovery string `json:"recovery"`

	Iterations int     `json:"iterations"` // all that were done, lost ones too
	MaxIter    int     `json:"maxIterations"`
	Seconds    float64 `json:"seconds"`

	Claimed      bool    `json:"solverClaimsConvergence"` // by the residual of its recursion
	Recursive    float   `json:"recursiveResidual"`
	Converged    bool    `json:"converged"`    // by the true residual
	TrueResidual float   `json:"trueResidual"` // |b-A·x|/|b| from scratch
	Error        *float  `json:"error,omitempty"`
	Failure      string  `json:"failure,omitempty"` // the error that ended the run
	Residuals    []float `json:"residuals"`         // by iteration, the recursion's

	Injections []injection `json:"injections"`
	Events     []event     `json:"events"`

	rows, nnz int       // of the matrix
	solution  []float64 // the leader's, with -out
}

// An event is an error that all ranks got, and what was done about it.
type event struct {
	Iteration int       `json:"iterationsDone"` // before it came
	Corrupted bool      `json:"corrupted"`      // the communicator, for good
	Failures  []failure `json:"failures"`
	Dead      []int     `json:"dead,omitempty"`  // whose processes died, and told nobody
	Panic     string    `json:"panic,omitempty"` // where it began

	Since    float     `json:"sinceFaultSeconds"`      // from the injection that it is about; null if from none
	Told     spread    `json:"toldSeconds"`            // after the first failure, the other ranks' contexts ended
	Unknown  bool      `json:"beginUnknown,omitempty"` // when that was, as it died with a process: the times are from when the first was told
	Ready    spread    `json:"readySeconds"`           // and all ranks had the complete error
	Takeover *takeover `json:"takeover,omitempty"`
	Recovery string    `json:"recovery,omitempty"`
	Repairs  []string  `json:"repairs,omitempty"`
	From     int       `json:"fromIteration"` // whose iterate the solver went on from
	Seconds  float64   `json:"recoverySeconds"`

	first, end time.Time
}

// A takeover is what became of the rows of ranks that are gone.
type takeover struct {
	Ranks  int `json:"ranks"`     // that went on
	Rows   int `json:"rows"`      // that they have
	Lost   int `json:"lostRows"`  // that nobody had any more, so that the iterate was lost there
	Moved  int `json:"movedRows"` // other rows that another rank has now
	Shrunk int `json:"shrunk"`    // how often: again for each time that ranks were lost meanwhile

	// The residuals |b-A·x|/|b|, and how the lost part of x was interpolated.
	Before       float `json:"residualBefore"` // as the recursion had it
	Zeroed       float `json:"residualZeroed"` // with 0 in the lost rows
	After        float `json:"residualAfter"`
	Iterations   int   `json:"interpolationIterations"`
	Interpolated bool  `json:"interpolated"` // else it stayed 0, as no interpolation was better
}

// A failure is mpicx.Failure for JSON.
type failure struct {
	Rank    int    `json:"rank"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	Origin  string `json:"origin"`
}

// A spread is of durations at several ranks, in seconds.
type spread struct {
	Ranks  int     `json:"ranks"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

func spreadOf(ds []time.Duration) spread {
	if len(ds) == 0 {
		return spread{}
	}
	ds = slices.Sorted(slices.Values(ds))
	return spread{len(ds), ds[0].Seconds(), ds[len(ds)/2].Seconds(), ds[len(ds)-1].Seconds()}
}

var nan = math.NaN()

// A float is null in JSON if it is not finite.
type float float64

// MarshalJSON encodes f.
func (f float) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// inferInjections adds what is known of the faults of ranks that can't say any more,
// as their processes have died. They struck if the rank came so far.
func (o *outcome) inferInjections(faults []Fault) {
	for _, f := range faults {
		if slices.ContainsFunc(o.Injections, func(i injection) bool { return i.Fault == f }) {
			continue
		}
		inj := injection{Fault: f}
		for _, e := range o.Events {
			if slices.Contains(e.Dead, f.Rank) {
				inj.Fired = f.Recovery == 0 && f.Iter <= e.Iteration || f.Kind == kindDie
				inj.At, inj.Done, inj.What = e.end, e.Iteration, "what it did is not known, as the process died"
				if f.Kind == kindDie {
					inj.What = "its process died"
				}
			}
		}
		o.Injections = append(o.Injections, inj)
	}
}

// attribute finds out which injections the events are about: those on a rank that
// failed later, the first of them for each failure of the kind that fails so. If there
// is none, a neighbour has seen what the rank gave it sooner than the rank itself.
func (o *outcome) attribute() {
	for i := range o.Events {
		e := &o.Events[i]
		e.Since = float(nan)
		found := false
		for _, d := range e.Dead {
			found = o.detected(e, func(inj *injection) bool { return inj.Rank == d && inj.Kind == kindDie }) || found
		}
		for _, f := range e.Failures {
			found = o.detected(e, func(inj *injection) bool { return inj.Rank == f.Rank && f.isOf(inj.Kind) }) || found
		}
		if !found {
			o.detected(e, func(inj *injection) bool {
				return slices.ContainsFunc(e.Failures, func(f failure) bool { return f.isOf(inj.Kind) })
			})
		}
	}
}

// isOf says whether a fault of the kind makes a rank fail so: by a finding, if it is a
// silent one, by a panic or by an error.
func (f failure) isOf(kind string) bool {
	switch kind {
	case kindDie:
		return false
	case kindPanic:
		return f.Code == 0 && strings.HasPrefix(f.Message, "panic: ")
	case kindError:
		return f.Code == 0 && !strings.HasPrefix(f.Message, "panic: ")
	}
	return f.Code != 0
}

// detected marks the first injection before e that no event was about so far and
// that which accepts, and says whether there is one.
func (o *outcome) detected(e *event, which func(*injection) bool) bool {
	for k := range o.Injections {
		inj := &o.Injections[k]
		if inj.Fired && !inj.Detected && !inj.At.After(e.end) && which(inj) {
			inj.Detected = true
			if !e.first.IsZero() && inj.Kind != kindDie { // which is the first itself
				since := float(e.first.Sub(inj.At).Seconds())
				if !(e.Since > since) { // of several, from the first
					e.Since = since
				}
			}
			return true
		}
	}
	return false
}
