package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/examples/krylov/detect"
	"github.com/mpicx/go-mpicx/examples/krylov/report"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// recover repairs a rank's state after failures, before the solver continues. An error that comes
// meanwhile interrupts it, and it is called again. Fresh says that some ranks have lost their
// memory.
func (r *rank) recover(ctx context.Context, a *recovery.Attempt, fresh bool, xDone int) error {
	begin := r.ready // shrinking the communicator took time as well
	if begin.IsZero() || len(a.Causes) == r.Mended {
		begin = time.Now()
	}
	r.Recoveries++
	saved, err := r.restore(ctx)
	if err != nil {
		return err
	}
	if err := r.injector.StrikeRecovery(r.Recoveries, r.Done, r.die); err != nil {
		return err
	}
	fits := make([]bool, 1)
	mine := r.x == nil || r.first == r.sys.a.First() && len(r.x) == r.sys.a.Rows()
	mpicx.Allreduce(r.comm, []bool{mine}, fits, mpicx.LAnd).MustWait(ctx)

	e := r.event(a)
	n := r.notice()
	recovery := r.trial.cfg.recovery
	switch {
	case !fits[0]:
		e.From = r.takeOver(ctx, &e, saved, xDone)
		e.Recovery = fmt.Sprintf("the survivors began a new Krylov space from the iterate of iteration %d", e.From)
	case fresh || recovery == recoverRollback || recovery == recoverReplace:
		e.From, e.Replaced = saved, fresh && len(a.Causes) > 0
		r.goBack(recovery != recoverRestart)
		e.Recovery = fmt.Sprintf("all ranks went back to the checkpoint of iteration %d", saved)
		if a.N == 0 || len(a.Causes) == 0 {
			e.Recovery = fmt.Sprintf("the job was started again from the checkpoint of iteration %d", saved)
		}
	default:
		n.Repair, e.From = r.restart(ctx, saved, xDone, e)
		e.Recovery = fmt.Sprintf("all ranks began a new Krylov space from the iterate of iteration %d", e.From)
	}

	notices := mpicx.AllgatherValue(r.comm, n).MustGet(ctx)
	notices = slices.DeleteFunc(notices, func(n report.Notice) bool { return n.Ready.IsZero() }) // the rank was not there
	e.Seconds = time.Since(begin).Seconds()
	for i := range r.Out.Events { // events that have ended a job
		if last := &r.Out.Events[i]; last.Recovery == "" {
			last.Recovery, last.From, last.Seconds = e.Recovery, e.From, time.Since(last.End).Seconds()
		}
	}
	if len(a.Causes) > r.Mended {
		e.Fill(notices)
		r.Out.Events = append(r.Out.Events, e)
	}
	r.Mended, r.Members = len(a.Causes), r.members
	r.told.Store(nil)
	return nil
}

// restore sets r.kept to the newest state that all ranks have, and returns its number of
// iterations: 0 if there is no state, or if it was lost with too many ranks.
func (r *rank) restore(ctx context.Context) (int, error) {
	version, err := r.store.Restore(ctx)
	_, lost := errors.AsType[*checkpoint.LostError](err)
	parts, newHere := errors.AsType[*checkpoint.PartsError](err)
	switch {
	case lost || errors.Is(err, checkpoint.ErrNone):
		r.kept.rank, r.kept.done, r.kept.method.X = checkpoint.None, 0, nil
		return 0, nil
	case newHere:
		r.kept.rank, r.kept.ranks, r.kept.method.X = checkpoint.None, parts.Parts, nil
	case err != nil:
		return 0, err
	}
	return version, nil
}

// event describes what has happened since the last recovery.
func (r *rank) event(a *recovery.Attempt) report.Event {
	e := report.Event{Iteration: r.Done}
	var at []int // ranks of the communicator of a cause, as ranks of the world
	for _, m := range r.Members {
		at = append(at, m.ID)
	}
	shrunk := len(at) != len(r.members)
	for _, cause := range a.Causes[r.Mended:] {
		failures, dead, corrupted := told(cause)
		var lost []int
		for _, f := range failures {
			f.Rank = idOf(at, f.Rank)
			lost = append(lost, f.Rank)
			e.Failures = append(e.Failures, report.FailuresOf([]mpicx.Failure{f})...)
			if e.First.IsZero() || f.Time.Before(e.First) {
				e.First = f.Time
			}
		}
		for _, d := range dead {
			lost = append(lost, idOf(at, d))
		}
		if corrupted {
			e.Corrupted = true
			e.Losses++
			if shrunk {
				at = slices.DeleteFunc(at, func(rank int) bool { return slices.Contains(lost, rank) })
			}
		}
	}
	for _, m := range r.Members { // the recovery may have been without more ranks than the causes say
		if !slices.Contains(r.members, m) && !e.Failed(m.ID) {
			e.Dead = append(e.Dead, m.ID)
		}
	}
	slices.Sort(e.Dead)
	e.First = r.trial.firstTime(e.First, e.Dead)
	return e
}

// idOf returns the rank in the world of a communicator's rank. It returns the rank itself if the
// causes do not account for all changes.
func idOf(at []int, rank int) int {
	if rank < len(at) {
		return at[rank]
	}
	return rank
}

// told returns the contents of an error that all ranks have.
func told(err error) (failures []mpicx.Failure, dead []int, corrupted bool) {
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		return c.Failures, c.Dead, true
	}
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
		return p.Failures, nil, false
	}
	return nil, nil, false
}

// notice says when the rank learned of the error. If no context ended, or its AfterFunc came late,
// the rank learned by a Wait, when the attempt ended.
func (r *rank) notice() report.Notice {
	n := report.Notice{Rank: r.id, Told: r.ready, Ready: r.ready}
	if at := r.told.Load(); at != nil && at.Before(n.Ready) {
		n.Told = *at
	}
	return n
}

// goBack sets x to the checkpoint's. If whole is set, the method continues from there as if nothing
// had happened.
func (r *rank) goBack(whole bool) {
	r.x, r.first, r.xDone = make([]float64, r.sys.a.Rows()), r.sys.a.First(), r.kept.done
	copy(r.x, r.kept.method.X)
	if whole && r.kept.done > 0 {
		r.resume = &r.kept.method
	}
}

// newest returns the rank's newest iterate and its number of iterations. GMRES has computed no
// iterate since the cycle began, except for the checkpoint.
func (r *rank) newest(saved, xDone int) ([]float64, int) {
	if r.trial.cfg.Method == "gmres" && saved > r.xDone {
		return r.kept.method.X, max(saved, xDone)
	}
	return r.x, xDone
}

// trusted reports whether the rank's own part of the iterate can be right after the event.
func (r *rank) trusted(x []float64, e report.Event) bool {
	return detect.AllFinite(x) && !slices.ContainsFunc(e.Failures, func(f report.Failure) bool { return f.Rank == r.id && f.Code == detect.CodeGap })
}

// restart sets x to the start of the new iteration: the newest iterate. A rank that failed takes
// its own part from the checkpoint if it does not trust the newest; with the newer parts of the
// others this is still a good start. If the checkpoint's iterate has the smaller residual, an
// undetected fault is in the newest, and the checkpoint's is used.
func (r *rank) restart(ctx context.Context, saved, xDone int, e report.Event) (repair string, from int) {
	old := make([]float64, len(r.x))
	copy(old, r.kept.method.X)
	x, from := r.newest(saved, xDone)
	x = slices.Clone(x)
	switch {
	case !r.trusted(x, e):
		copy(x, old)
		repair = fmt.Sprintf("rank %d took its part of the solution from its checkpoint of iteration %d", r.id, saved)
	case e.Failed(r.id):
		repair = fmt.Sprintf("rank %d kept its part of the solution", r.id)
	}
	if !(r.sys.TrueResidual(ctx, x) <= r.sys.TrueResidual(ctx, old)) {
		x, from = old, saved
		if repair != "" {
			repair = fmt.Sprintf("rank %d and all others took their parts of the solution from the checkpoint of iteration %d, whose residual is smaller", r.id, saved)
		}
	}
	r.x, r.xDone = x, from
	return repair, from
}

// takeOver brings the iterate to the new owners of the rows. For rows that were lost with their
// ranks, it takes the checkpoint's elements, or interpolates them.
func (r *rank) takeOver(ctx context.Context, e *report.Event, saved, xDone int) (from int) {
	newest, from := r.newest(saved, xDone)
	var mine []distributed.Part
	if r.x != nil && r.trusted(newest, *e) {
		mine = append(mine, distributed.Part{First: r.first, Values: newest})
	}
	m := r.sys.a
	x, lost, err := m.Vector(ctx, mine...)
	mpicx.Throw(err)
	t := &report.Takeover{Ranks: len(r.members), Rows: m.Size(), Shrunk: e.Losses}
	t.Lost, t.Moved = r.count(ctx, lost, mine)
	old, _, err := m.Vector(ctx, r.saved(ctx, saved)...)
	mpicx.Throw(err)
	r.interpolate(ctx, x, old, lost, t)
	e.Takeover = t
	r.x, r.first, r.xDone, r.residual, r.resume = x, m.First(), from, float64(t.After), nil
	return from
}

// count returns how many rows were lost, and how many others have a new owner.
func (r *rank) count(ctx context.Context, lost []bool, mine []distributed.Part) (nobody, moved int) {
	counts, all := make([]int, 2), make([]int, 2)
	for _, l := range lost {
		if l {
			counts[0]++
		}
	}
	lo, hi := r.sys.a.First(), r.sys.a.First()+r.sys.a.Rows()
	for _, p := range mine {
		counts[1] += max(0, min(hi, p.First+len(p.Values))-max(lo, p.First)) // rows that stay
	}
	mpicx.Allreduce(r.comm, counts, all, mpicx.Sum).MustWait(ctx)
	return all[0], r.sys.a.Size() - all[0] - all[1]
}

// saved returns this rank's share of the checkpoint's iterate: its own part, and parts of ranks
// that are gone.
func (r *rank) saved(ctx context.Context, version int) (parts []distributed.Part) {
	owners := mpicx.AllgatherValue(r.comm, []int{r.kept.rank, r.kept.ranks}).MustGet(ctx)
	if version == 0 {
		return nil
	}
	if r.kept.rank != checkpoint.None {
		parts = append(parts, distributed.Part{First: r.kept.first, Values: r.kept.method.X})
	}
	var orphans []int
	for part := range r.kept.ranks {
		if !slices.ContainsFunc(owners, func(o []int) bool { return o[0] == part }) {
			orphans = append(orphans, part)
		}
	}
	for first := 0; first < len(orphans); first += r.comm.Size() { // each rank takes one
		part := checkpoint.None
		if at := first + r.comm.Rank(); at < len(orphans) {
			part = orphans[at]
		}
		first, err := checkpoint.Load[int](ctx, r.store, "first", part, version)
		mpicx.Throw(err)
		x, err := checkpoint.Load[float64](ctx, r.store, "x", part, version)
		mpicx.Throw(err)
		if part != checkpoint.None {
			parts = append(parts, distributed.Part{First: first[0], Values: x})
		}
	}
	return parts
}

// interpolate fills in the lost elements of x with the candidate of the smallest residual: the
// checkpoint's, interpolated ones, or 0. There may be no interpolated ones, because the block of
// the matrix in the lost rows may be singular.
func (r *rank) interpolate(ctx context.Context, x, old []float64, lost []bool, t *report.Takeover) {
	cfg := r.trial.cfg
	before := r.residualBefore(ctx)
	zeroed := r.sys.TrueResidual(ctx, x)
	kept := slices.Clone(x)
	for i, l := range lost {
		if l {
			kept[i] = old[i]
		}
	}
	restored := r.sys.TrueResidual(ctx, kept)

	// An error in these rows does not matter if it is a tenth of the error in the others.
	const part = 0.1
	y := slices.Clone(x)
	res, err := krylov.Interpolate(ctx, r.sys.System, y, lost, methods[cfg.Method], krylov.Options{
		Tol: part * max(before, cfg.Tol), MaxIter: min(t.Lost, cfg.maxIter), Restart: cfg.GMRESRestart,
	})
	after := math.NaN()
	if _, ok := errors.AsType[*krylov.BreakdownError](err); !ok { // all ranks have it alike
		mpicx.Throw(err)
		after = r.sys.TrueResidual(ctx, y)
	}
	t.Before, t.Zeroed, t.Restored, t.Iterations = report.Float(before), report.Float(zeroed), report.Float(restored), res.Iterations
	least := zeroed
	if restored < least {
		least = restored
		copy(x, kept)
	}
	if t.Interpolated = after < least; t.Interpolated {
		least = after
		copy(x, y)
	}
	t.After = report.Float(least)
}

// residualBefore is the last residual that the ranks saw. It was finite, unless the fault made it
// infinite or NaN.
func (r *rank) residualBefore(ctx context.Context) float64 {
	mine, least := []float64{r.residual}, make([]float64, 1)
	if math.IsNaN(r.residual) || r.x == nil {
		mine[0] = math.Inf(1)
	}
	mpicx.Allreduce(r.comm, mine, least, mpicx.Min).MustWait(ctx)
	if math.IsInf(least[0], 1) {
		return 1 // the initial residual
	}
	return least[0]
}
