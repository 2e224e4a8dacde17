package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// checkpoints are the last two of a rank: a rank that fails may not have saved
// the one that others have.
type checkpoints struct {
	slots [2]checkpoint
	last  int // the newer slot
}

type checkpoint struct {
	done  int // iterations; 0: there is none
	state krylov.Snapshot
}

// next returns where to save the state after so many iterations.
func (c *checkpoints) next(done int) *krylov.Snapshot {
	c.last = 1 - c.last
	s := &c.slots[c.last]
	s.done = done
	return &s.state
}

// newest is how many iterations the newer checkpoint has.
func (c *checkpoints) newest() int { return c.slots[c.last].done }

// at returns the checkpoint after so many iterations, which all ranks have, and
// forgets one that is newer. It is nil for 0 iterations.
func (c *checkpoints) at(done int) *krylov.Snapshot {
	if c.slots[c.last].done > done {
		c.slots[c.last].done = 0
		c.last = 1 - c.last
	}
	if done == 0 {
		return nil
	}
	return &c.slots[c.last].state
}

// A notice is what the leader is told about a rank's part in an event.
type notice struct {
	Rank        int
	Told, Ready time.Time
	Repair      string
}

// notice says when the rank knew. If no context told it, or its AfterFunc came
// late, the Wait did that it was in, which is when Try returned.
func (r *rank) notice() notice {
	n := notice{Rank: r.id, Told: r.ready, Ready: r.ready}
	if at := r.told.Load(); at != nil && at.Before(r.ready) {
		n.Told = *at
	}
	return n
}

// recover does what is to be done after failures of ranks, before the solver goes
// on. It runs inside Try: an error that comes meanwhile interrupts it as well,
// and it is done again.
func (r *rank) recover(ctx context.Context) error {
	if len(r.failures) == 0 && !r.rerun && r.has == r.layout {
		return nil
	}
	begin := time.Now()

	// Ranks may be an iteration apart, and an error in a recovery may have come to
	// some after it. What they decide by, all agree on.
	mine := []int{r.done, -r.saved.newest(), r.xDone, r.attempts + 1, 0}
	if r.rerun {
		mine[4] = 1
	}
	all := make([]int, len(mine))
	mpicx.Allreduce(r.comm, mine, all, mpicx.Max).MustWait(ctx)
	done, saved, xDone, rerun := all[0], -all[1], all[2], all[4] == 1
	r.done, r.attempts, r.rerun = done, all[3], rerun
	snapshot := r.saved.at(saved)
	if err := r.strikeRecovery(ctx); err != nil {
		return err
	}

	e := event{Iteration: done, Failures: failuresOf(r.failures)}
	n := r.notice()
	settle := func() {}
	switch {
	case r.has != r.layout:
		begin = r.ready // to shrink the communicator took time as well
		e.From = r.newestIterate(snapshot, saved, xDone)
		settle = r.takeOver(ctx, &e)
		e.Recovery = fmt.Sprintf("the survivors began a new Krylov space from the iterate of iteration %d", e.From)
	case rerun:
		e.Recovery, e.From = fmt.Sprintf("the job was started again from the checkpoint of iteration %d", saved), saved
		r.goBack(snapshot, r.trial.cfg.recovery == recoverRollback)
	case r.trial.cfg.recovery == recoverRollback:
		e.Recovery, e.From = fmt.Sprintf("all ranks went back to the checkpoint of iteration %d", saved), saved
		r.goBack(snapshot, true)
	default:
		n.Repair, e.From = r.restart(ctx, snapshot, saved, xDone)
		e.Recovery = fmt.Sprintf("all ranks began a new Krylov space from the iterate of iteration %d", e.From)
	}

	notices := mpicx.AllgatherValue(r.comm, n).MustGet(ctx)
	settle()
	e.Seconds = time.Since(begin).Seconds()
	if rerun && len(r.out.Events) > 0 { // the event is what ended the job
		last := &r.out.Events[len(r.out.Events)-1]
		last.Recovery, last.From, last.Seconds = e.Recovery, e.From, time.Since(last.end).Seconds()
	}
	if len(r.failures)+len(e.Dead) > 0 || e.Takeover != nil {
		e.first, e.end = r.trial.firstTime(r.failures, e.Dead), r.ready
		e.fill(notices)
		r.out.Events = append(r.out.Events, e)
	}
	r.rerun, r.failures = false, nil
	r.told.Store(nil)
	return nil
}

// strikeRecovery has those faults happen that are to come in a recovery.
func (r *rank) strikeRecovery(ctx context.Context) error {
	if !slices.ContainsFunc(r.trial.cfg.faults, func(f Fault) bool { return f.Recovery > 0 }) {
		return nil
	}
	// Before one of them interrupts the others, all know which recovery this is.
	r.comm.Barrier().MustWait(ctx)
	return r.injector.strikeRecovery(r.attempts, r.done)
}

// newestIterate has the newest iterate in x, and returns of which iteration that
// is: xDone at the ranks that have come farthest. GMRES has computed none since the
// cycle began, but for the checkpoint.
func (r *rank) newestIterate(snapshot *krylov.Snapshot, saved, xDone int) (from int) {
	if r.trial.cfg.method != "gmres" {
		return xDone
	}
	if saved > r.xDone {
		r.goBack(snapshot, false)
	}
	return max(saved, xDone)
}

// restart sets x to what the solver begins anew from: the newest iterate, in which a
// rank that failed takes its own part from the checkpoint if it does not trust it. If
// the iterate of the checkpoint has the smaller residual, a fault has got into the
// newest without having been found there.
func (r *rank) restart(ctx context.Context, snapshot *krylov.Snapshot, saved, xDone int) (repair string, from int) {
	from = r.newestIterate(snapshot, saved, xDone)
	repair = r.repair(snapshot, saved)
	newest, old := slices.Clone(r.x), make([]float64, len(r.x))
	if snapshot != nil {
		copy(old, snapshot.X)
	}
	if better := r.sys.TrueResidual(ctx, newest) <= r.sys.TrueResidual(ctx, old); better {
		return repair, from
	}
	copy(r.x, old)
	if repair != "" {
		repair = fmt.Sprintf("rank %d and all others took their parts of the solution from the checkpoint of iteration %d, whose residual is smaller", r.id, saved)
	}
	return repair, saved
}

// goBack sets x to the checkpoint's, and, if whole, lets the method continue from
// there as if nothing had happened.
func (r *rank) goBack(snapshot *krylov.Snapshot, whole bool) {
	if snapshot == nil {
		clear(r.x)
		return
	}
	copy(r.x, snapshot.X)
	if whole {
		r.resume = snapshot
	}
}

// repair mends the rank's own part of the solution, if it failed and its part
// can't be trusted, and says so. The part of the last checkpoint does: together
// with the others' newer parts it is as good an iterate to begin from as any.
func (r *rank) repair(snapshot *krylov.Snapshot, saved int) string {
	for _, f := range r.failures {
		if f.Rank != r.id {
			continue
		}
		if f.Code == codeGap || !allFinite(r.x) {
			r.goBack(snapshot, false)
			return fmt.Sprintf("rank %d took its part of the solution from its checkpoint of iteration %d", r.id, saved)
		}
		return fmt.Sprintf("rank %d kept its part of the solution", r.id)
	}
	return ""
}

// firstTime is when the first of these ranks failed or died. It is zero if that
// is not known, as it dies with a process.
func (t *trial) firstTime(fs []mpicx.Failure, dead []int) time.Time {
	var times []time.Time
	for _, f := range fs {
		times = append(times, f.Time)
	}
	for _, d := range dead {
		if r := t.ranks[d]; r != nil && !r.died.IsZero() {
			times = append(times, r.died)
		}
	}
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

func failuresOf(fs []mpicx.Failure) []failure {
	out := make([]failure, len(fs))
	for i, f := range fs {
		out[i] = failure{f.Rank, f.Code, f.Message, f.Origin}
	}
	return out
}

// fill adds what the ranks noticed. If nobody knows when it began, that is when
// the first of them did.
func (e *event) fill(notices []notice) {
	if e.first.IsZero() && len(notices) > 0 {
		e.Unknown = true
		e.first = slices.MinFunc(notices, func(a, b notice) int { return a.Told.Compare(b.Told) }).Told
	}
	var told, ready []time.Duration
	for _, n := range notices {
		if !e.failed(n.Rank) {
			told = append(told, max(n.Told.Sub(e.first), 0)) // told of something earlier: it knew at once
		}
		ready = append(ready, n.Ready.Sub(e.first))
		if n.Repair != "" {
			e.Repairs = append(e.Repairs, n.Repair)
		}
	}
	e.Told, e.Ready = spreadOf(told), spreadOf(ready)
}

func (e *event) failed(rank int) bool {
	return slices.ContainsFunc(e.Failures, func(f failure) bool { return f.Rank == rank })
}
