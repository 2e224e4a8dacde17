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

// errAllDead is the end of a job without survivors.
var errAllDead = errors.New("the processes of all ranks died")

// codeSetup is the code of an error that prevents a run from beginning.
const codeSetup = 5

// A setupError says that the run could not begin.
type setupError struct{ text string }

func (e *setupError) Error() string  { return e.text }
func (e *setupError) ErrorCode() int { return codeSetup }

// setUpFailed returns err as a setupError if it is this rank's own error. After an error of another
// rank, or a death, the run can begin again.
func setUpFailed(err error) error {
	_, propagated := errors.AsType[*mpicx.PropagatedError](err)
	if _, _, corrupted := told(err); err == nil || corrupted || propagated {
		return nil
	}
	return &setupError{err.Error()}
}

// isEnd reports whether err says that a communicator is corrupted or revoked.
func isEnd(err error) bool {
	_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
	_, panicked := errors.AsType[*mpicx.PanicError](err)
	return corrupted || panicked || errors.Is(err, errAllDead)
}

// isInjected reports whether err, returned by mpicx.Run, consists only of errors that this program
// makes. Anything else is a bug, which a recovery would hide.
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
			return false // under a launcher the process is really gone
		}
	}
	return true
}

// isGone returns a function that reports whether a rank among c's dead has died silently. A rank
// that panicked has told its peers. It counts as dead for them once its function has ended, but its
// process takes part in the next job.
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
			e.Dead = append(e.Dead, d) // its peers had left before they knew
		}
	}
	slices.Sort(e.Dead)
	var first time.Time
	if len(failures) > 0 {
		first = slices.MinFunc(failures, func(a, b mpicx.Failure) int { return a.Time.Compare(b.Time) }).Time
	}
	e.First = t.firstTime(first, e.Dead)
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok && len(failures) == 0 { // no other rank was there to be told
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

// didWithout reports whether the others continued without the rank.
func (t *trial) didWithout(id int) bool {
	return slices.ContainsFunc(t.ranks, func(r *rank) bool {
		return r != nil && slices.ContainsFunc(r.Out.Events, func(e report.Event) bool { return e.Takeover != nil && slices.Contains(e.Dead, id) })
	})
}

// firstTime is the time of the first failure or death. The first rank to fail has done so at the
// given time. It is zero if the time is not known, because it was lost with a process.
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

// reporter is the leader, or nil if the leader is in another process. A rank that was lost may
// believe that it leads, too.
func (t *trial) reporter() (lead *rank) {
	for _, r := range t.ranks {
		if r != nil && r.leads() && (lead == nil || r.finished || lead.lost) {
			lead = r
		}
	}
	return lead
}

// finish returns the outcome of a run that ended with err, according to a rank of this process.
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
	if !r.Began.IsZero() { // otherwise it ended before there was a system
		o.Seconds = r.ended.Sub(r.Began).Seconds()
	}
	o.Attribute()
	return o
}

// firstCause returns the text of the first error.
func firstCause(err error) string {
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
		return fmt.Sprintf("rank %d panicked: %v", p.Rank, p.Value)
	}
	failures, _, _ := told(err)
	switch {
	case len(failures) == 0:
		return err.Error()
	case failures[0].Code == detect.CodeBreakdown: // all ranks report the same
		return failures[0].Message
	}
	return cmp.Or(failures[0].String(), err.Error())
}
