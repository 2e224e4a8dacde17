package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/examples/krylov/detect"
	"github.com/mpicx/go-mpicx/examples/krylov/fault"
	"github.com/mpicx/go-mpicx/examples/krylov/report"
	"github.com/mpicx/go-mpicx/mpicx"
)

// errAllDead is how a job ends if nobody is left to say how.
var errAllDead = errors.New("the processes of all ranks died")

// codeSetup is the code of an error that a run can't begin with.
const codeSetup = 5

// A setupError says that the run could not begin.
type setupError struct{ text string }

func (e *setupError) Error() string  { return e.text }
func (e *setupError) ErrorCode() int { return codeSetup }

// setUpFailed returns err as one that the run can't begin with, if it is this rank's own:
// after one of another rank, or a death, the run can begin again.
func setUpFailed(err error) error {
	_, propagated := errors.AsType[*mpicx.PropagatedError](err)
	if _, _, corrupted := told(err); err == nil || corrupted || propagated {
		return nil
	}
	return &setupError{err.Error()}
}

// isEnd says whether err is that of a communicator that is of no use any more.
func isEnd(err error) bool {
	_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
	_, panicked := errors.AsType[*mpicx.PanicError](err)
	return corrupted || panicked || errors.Is(err, errAllDead)
}

// isInjected says whether err, of mpicx.Run, is nothing but what this program
// makes. Anything else is its own mistake, which going on would hide.
func (t *trial) isInjected(err error) bool {
	if err == nil || errors.Is(err, errAllDead) {
		return true
	}
	ranks, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, err := range ranks.Unwrap() {
		if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
			if r := t.ranks[p.Rank]; r == nil || !r.injector.HasPanicked() {
				return false
			}
		} else if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok || processes > 0 && slices.ContainsFunc(c.Dead, isGone(c)) {
			return false // under a launcher the process is gone indeed
		}
	}
	return true
}

// isGone returns a function that says whether a rank that c tells to be dead has died silently.
// One that panicked has told its peers, and counts as dead for them when its function has ended;
// but its process comes to the next job.
func isGone(c *mpicx.CommCorruptedError) func(rank int) bool {
	return func(rank int) bool {
		return !slices.ContainsFunc(c.Failures, func(f mpicx.Failure) bool { return f.Rank == rank })
	}
}

// noteEnd adds the event that ended a job with err.
func (t *trial) noteEnd(err error) {
	e := report.Event{Corrupted: true, End: time.Now()}
	failures, dead, _ := told(err)
	e.Failures, e.Dead = report.FailuresOf(failures), slices.Clone(dead)
	for _, d := range slices.Sorted(maps.Keys(t.deaths)) {
		if !t.didWithout(d) && !slices.Contains(e.Dead, d) {
			e.Dead = append(e.Dead, d) // its peers had gone before they knew
		}
	}
	slices.Sort(e.Dead)
	var first time.Time
	if len(failures) > 0 {
		first = slices.MinFunc(failures, func(a, b mpicx.Failure) int { return a.Time.Compare(b.Time) }).Time
	}
	e.First = t.firstTime(first, e.Dead)
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok && len(failures) == 0 { // nobody else was there to be told
		e.Failures = []report.Failure{{Rank: p.Rank, Message: fmt.Sprintf("panic: %v", p.Value)}}
	}
	var notices []report.Notice
	for _, r := range t.ranks {
		if r == nil {
			continue
		}
		e.Iteration = max(e.Iteration, r.Done)
		if len(failures)+len(e.Dead) > 0 && !e.Failed(r.id) && !slices.Contains(e.Dead, r.id) {
			notices = append(notices, r.notice())
		}
	}
	e.Fill(notices)
	for _, r := range t.ranks {
		if r != nil {
			r.Out.Events = append(r.Out.Events, e)
		}
	}
}

// didWithout says whether the others went on without the rank.
func (t *trial) didWithout(id int) bool {
	return slices.ContainsFunc(t.ranks, func(r *rank) bool {
		return r != nil && slices.ContainsFunc(r.Out.Events, func(e report.Event) bool { return e.Takeover != nil && slices.Contains(e.Dead, id) })
	})
}

// firstTime is when the first of the ranks failed or died, of which the first to fail has at
// the time given. It is zero if that is not known, as it dies with a process.
func (t *trial) firstTime(failed time.Time, dead []int) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range dead {
		if at, ok := t.deaths[d]; ok && (failed.IsZero() || at.Before(failed)) {
			failed = at
		}
	}
	return failed
}

// reporter is the leader, or nil if that is of another process. Who has been lost
// may believe to lead as well.
func (t *trial) reporter() (lead *rank) {
	for _, r := range t.ranks {
		if r != nil && r.leads() && (lead == nil || r.finished || lead.lost) {
			lead = r
		}
	}
	return lead
}

// finish returns the outcome of a run that ended with err, as a rank of this process
// has it.
func (t *trial) finish(err error) *report.Outcome {
	r := t.reporter()
	if r == nil {
		r = t.ranks[slices.IndexFunc(t.ranks, func(r *rank) bool { return r != nil })]
	}
	o := &r.Out
	if err != nil {
		o.Failure = firstCause(err)
		o.Converged = false
		o.TrueResidual = report.Float(math.NaN())
		o.Recursive = report.Float(math.NaN())
		r.ended = time.Now()
	}
	for _, r := range t.ranks {
		if r == nil {
			continue
		}
		o.Iterations = max(o.Iterations, r.Done) // an error may have ended one sooner
		if !slices.ContainsFunc(o.Injections, func(i fault.Injection) bool { return i.Rank == r.id }) {
			o.Injections = append(o.Injections, r.injector.Injections...)
		}
	}
	o.InferInjections(t.cfg.faults)
	for i := range o.Injections {
		if inj := &o.Injections[i]; !inj.Fired {
			inj.At = r.ended // after the others
		}
	}
	slices.SortStableFunc(o.Injections, func(a, b fault.Injection) int { return a.At.Compare(b.At) })
	if !r.Began.IsZero() { // else it has ended before the system was there
		o.Seconds = r.ended.Sub(r.Began).Seconds()
	}
	o.Attribute()
	return o
}

// firstCause is the text of the error that began it all.
func firstCause(err error) string {
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
		return fmt.Sprintf("rank %d panicked: %v", p.Rank, p.Value)
	}
	failures, _, _ := told(err)
	switch {
	case len(failures) == 0:
		return err.Error()
	case failures[0].Code == detect.CodeBreakdown: // all ranks say the same
		return failures[0].Message
	}
	return cmp.Or(failures[0].String(), err.Error())
}
