package report

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/examples/krylov/fault"
)

// Each failure is attributed to its own fault, even if the rank has another fault later.
func TestAttribution(t *testing.T) {
	nan := Float(math.NaN())
	at := time.Now()
	o := &Outcome{
		Injections: []fault.Injection{
			{Fault: fault.Fault{Kind: fault.KindBitflip, Rank: 2}, Fired: true, At: at},
			{Fault: fault.Fault{Kind: fault.KindError, Rank: 1}, Fired: true, At: at.Add(1)},
			{Fault: fault.Fault{Kind: fault.KindPanic, Rank: 2, Recovery: 1}, Fired: true, At: at.Add(2)},
		},
		Events: []Event{
			{Failures: []Failure{{Rank: 1, Message: "material"}}, First: at, End: at.Add(3), Since: nan},
			{Failures: []Failure{{Rank: 2, Message: "panic: index"}}, First: at, End: at.Add(4), Since: nan},
		},
	}
	o.Attribute()
	detected := []bool{o.Injections[0].Detected, o.Injections[1].Detected, o.Injections[2].Detected}
	assert.Equal(t, []bool{false, true, true}, detected)
}

// The report that a dead process can't make is inferred from the effects of its death.
func TestInferInjections(t *testing.T) {
	flip, die, late := fault.Fault{Kind: fault.KindBitflip, Rank: 1, Iter: 3}, fault.Fault{Kind: fault.KindDie, Rank: 1, Iter: 5}, fault.Fault{Kind: fault.KindNaN, Rank: 1, Iter: 9}
	o := &Outcome{Events: []Event{{Iteration: 5, Dead: []int{1}}}}
	o.InferInjections([]fault.Fault{flip, die, late})
	require.Len(t, o.Injections, 3)
	require.Equal(t, []bool{true, true, false}, []bool{o.Injections[0].Fired, o.Injections[1].Fired, o.Injections[2].Fired})

	// The process of a rank that has panicked cannot report either.
	bug := fault.Fault{Kind: fault.KindPanic, Rank: 2, Iter: 7}
	o = &Outcome{Events: []Event{{Iteration: 6, Corrupted: true, Failures: []Failure{{Rank: 2, Message: "panic: a bug"}}}}}
	o.InferInjections([]fault.Fault{bug})
	require.True(t, o.Injections[0].Fired)
	require.Equal(t, "a component on the rank panicked", o.Injections[0].What)
}

// If the time of the death is not known, no duration since then is reported.
func TestUnknownTimeOfDeath(t *testing.T) {
	at := time.Now()
	e := Event{Dead: []int{1}}
	e.Fill([]Notice{{Rank: 0, Told: at.Add(2 * time.Millisecond), Ready: at.Add(3 * time.Millisecond)}, {Rank: 2, Told: at.Add(5 * time.Millisecond), Ready: at.Add(9 * time.Millisecond)}})
	var out bytes.Buffer
	(&textReport{cfg: &Settings{}, w: &out}).event(e)
	require.NotContains(t, out.String(), "after 0s (first)")
	require.Contains(t, out.String(), "the other 2 ranks, the last 3ms after the first; when it began is not known")
}
