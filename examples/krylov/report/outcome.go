package report

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/examples/krylov/fault"
	"github.com/mpicx/go-mpicx/mpicx"
)

// An Outcome is the result of a run. -json prints it.
type Outcome struct {
	Name     string `json:"name"`
	Recovery string `json:"recovery"`

	Iterations int     `json:"iterations"` // all of them, including lost ones
	MaxIter    int     `json:"maxIterations"`
	Seconds    float64 `json:"seconds"`

	Claimed      bool    `json:"solverClaimsConvergence"` // by the recursive residual
	Recursive    Float   `json:"recursiveResidual"`
	Converged    bool    `json:"converged"`    // by the true residual
	TrueResidual Float   `json:"trueResidual"` // |b-A·x|/|b| from scratch
	Error        *Float  `json:"error,omitempty"`
	Failure      string  `json:"failure,omitempty"` // the error that ended the run
	Residuals    []Float `json:"residuals"`         // the recursive ones, by iteration

	Injections []fault.Injection `json:"injections"`
	Events     []Event           `json:"events"`

	Rows, NNZ int       `json:"-"` // of the matrix
	Solution  []float64 `json:"-"` // the leader's, with -out
}

// An Event is an error that all ranks got, and the recovery from it.
type Event struct {
	Iteration int       `json:"iterationsDone"` // before the error came
	Corrupted bool      `json:"corrupted"`      // the communicator is corrupted
	Failures  []Failure `json:"failures"`
	Dead      []int     `json:"dead,omitempty"` // ranks that died without reporting an error

	Since    Float     `json:"sinceFaultSeconds"`      // from its injection; null if it has none
	Told     Spread    `json:"toldSeconds"`            // from the first failure until the other ranks' contexts ended
	Unknown  bool      `json:"beginUnknown,omitempty"` // the time of the failure is lost with a process: the times are from when the first rank was told
	Ready    Spread    `json:"readySeconds"`           // until all ranks had the complete error
	Takeover *Takeover `json:"takeover,omitempty"`
	Replaced bool      `json:"replaced,omitempty"` // spares have taken the places of lost ranks
	Recovery string    `json:"recovery,omitempty"`
	Repairs  []string  `json:"repairs,omitempty"`
	From     int       `json:"fromIteration"` // the solver continued from its iterate
	Seconds  float64   `json:"recoverySeconds"`

	First time.Time `json:"-"` // when the first of these ranks failed
	End   time.Time `json:"-"` // when all ranks had the complete error

	Losses int `json:"-"` // how often ranks were lost, including losses during a recovery
}

// A Takeover describes what happened to the rows of ranks that are gone.
type Takeover struct {
	Ranks  int `json:"ranks"`     // that continued
	Rows   int `json:"rows"`      // that they own
	Lost   int `json:"lostRows"`  // whose elements of the iterate were lost
	Moved  int `json:"movedRows"` // other rows with a new owner
	Shrunk int `json:"shrunk"`    // how often, including shrinks because of losses meanwhile

	// The residuals |b-A·x|/|b|, and how the lost part of x was interpolated.
	Before       Float `json:"residualBefore"`   // the recursive residual
	Zeroed       Float `json:"residualZeroed"`   // with 0 in the lost rows
	Restored     Float `json:"residualRestored"` // with the checkpoint's elements there
	After        Float `json:"residualAfter"`
	Iterations   int   `json:"interpolationIterations"`
	Interpolated bool  `json:"interpolated"` // false if no interpolation was better
}

// A Failure is mpicx.Failure for JSON.
type Failure struct {
	Rank    int    `json:"rank"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	Origin  string `json:"origin"`
}

// A Spread describes durations at several ranks, in seconds.
type Spread struct {
	Ranks  int     `json:"ranks"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// FailuresOf returns failures for a report.
func FailuresOf(fs []mpicx.Failure) []Failure {
	out := make([]Failure, len(fs))
	for i, f := range fs {
		out[i] = Failure{f.Rank, f.Code, f.Message, f.Origin}
	}
	return out
}

// SpreadOf returns the spread of ds.
func SpreadOf(ds []time.Duration) Spread {
	if len(ds) == 0 {
		return Spread{}
	}
	ds = slices.Sorted(slices.Values(ds))
	return Spread{len(ds), ds[0].Seconds(), ds[len(ds)/2].Seconds(), ds[len(ds)-1].Seconds()}
}

// A Float is null in JSON if it is not finite.
type Float float64

// MarshalJSON encodes f.
func (f Float) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// InferInjections adds what is known of the faults of ranks that have died or panicked, and whose
// processes can't report them. Such a fault struck if the rank came to that iteration.
func (o *Outcome) InferInjections(faults []fault.Fault) {
	for _, f := range faults {
		if slices.ContainsFunc(o.Injections, func(i fault.Injection) bool { return i.Fault == f }) {
			continue
		}
		inj := fault.Injection{Fault: f}
		for _, e := range o.Events {
			panicked := e.Corrupted && e.Failed(f.Rank)
			if panicked || slices.Contains(e.Dead, f.Rank) {
				inj.Fired = f.Recovery == 0 && f.Iter <= e.Iteration || f.Kind == fault.KindDie && !panicked || f.Kind == fault.KindPanic && panicked
				inj.At, inj.Done, inj.What = e.End, e.Iteration, "what it did is not known, as the process died"
				switch f.Kind {
				case fault.KindDie:
					inj.What = "its process died"
				case fault.KindPanic:
					inj.What = "a component on the rank panicked"
				}
			}
		}
		o.Injections = append(o.Injections, inj)
	}
}

// Attribute finds the injections that the events are about: for each Failure, the first injection
// of a suitable kind on that rank. If there is none, a neighbour has detected the fault, in what
// the rank gave it, before the rank itself.
func (o *Outcome) Attribute() {
	for i := range o.Events {
		e := &o.Events[i]
		e.Since = Float(math.NaN())
		found := false
		for _, d := range e.Dead {
			found = o.detected(e, func(inj *fault.Injection) bool { return inj.Rank == d && inj.Kind == fault.KindDie }) || found
		}
		for _, f := range e.Failures {
			found = o.detected(e, func(inj *fault.Injection) bool { return inj.Rank == f.Rank && f.isOf(inj.Kind) }) || found
		}
		if !found {
			o.detected(e, func(inj *fault.Injection) bool {
				return slices.ContainsFunc(e.Failures, func(f Failure) bool { return f.isOf(inj.Kind) })
			})
		}
	}
}

// isOf reports whether a fault of the kind makes a rank fail in this way: silent faults lead to a
// finding, others to a panic or an error.
func (f Failure) isOf(kind string) bool {
	switch kind {
	case fault.KindDie:
		return false
	case fault.KindPanic:
		return f.Code == 0 && strings.HasPrefix(f.Message, "panic: ")
	case fault.KindError:
		return f.Code == 0 && !strings.HasPrefix(f.Message, "panic: ")
	}
	return f.Code != 0
}

// detected marks the first fault.Injection before e that belongs to no Event yet and that which
// accepts. It reports whether there is one.
func (o *Outcome) detected(e *Event, which func(*fault.Injection) bool) bool {
	for k := range o.Injections {
		inj := &o.Injections[k]
		if inj.Fired && !inj.Detected && !inj.At.After(e.End) && which(inj) {
			inj.Detected = true
			if !e.First.IsZero() && inj.Kind != fault.KindDie { // a death is itself the first failure
				since := Float(e.First.Sub(inj.At).Seconds())
				if !(e.Since > since) { // if there are several, since the first
					e.Since = since
				}
			}
			return true
		}
	}
	return false
}

// A Notice is what a rank tells the others about its part in an event.
type Notice struct {
	Rank        int
	Told, Ready time.Time
	Repair      string
}

// Fill adds what the ranks noticed. If the time of the failure is not known, the first notice
// counts as that time.
func (e *Event) Fill(notices []Notice) {
	if e.First.IsZero() && len(notices) > 0 {
		e.Unknown = true
		e.First = slices.MinFunc(notices, func(a, b Notice) int { return a.Told.Compare(b.Told) }).Told
	}
	var told, ready []time.Duration
	for _, n := range notices {
		if !e.Failed(n.Rank) {
			told = append(told, max(n.Told.Sub(e.First), 0)) // told of an earlier failure: it knew at once
		}
		ready = append(ready, n.Ready.Sub(e.First))
		if n.Ready.After(e.End) {
			e.End = n.Ready
		}
		if n.Repair != "" {
			e.Repairs = append(e.Repairs, n.Repair)
		}
	}
	e.Told, e.Ready = SpreadOf(told), SpreadOf(ready)
}

// Failed reports whether the rank failed in the event.
func (e *Event) Failed(rank int) bool {
	return slices.ContainsFunc(e.Failures, func(f Failure) bool { return f.Rank == rank })
}
