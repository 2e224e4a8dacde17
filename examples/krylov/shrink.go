package main

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// lostPeers says whether err ended the rank's communicator because other members
// are gone: their processes died, or they panicked. It notes what they said.
func (r *rank) lostPeers(err error) bool {
	c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
	if ok {
		before := len(r.failures)
		r.noteFailures(c.Failures)
		for _, f := range r.failures[before:] {
			r.unwound = append(r.unwound, f.Rank)
		}
	}
	return ok
}

// regroup takes the rank's part of the system among the members of a communicator
// that has shrunk. What the rank has of the iterate stays what it was: see
// takeOver.
func (r *rank) regroup(ctx context.Context) error {
	members := make([]int, r.comm.Size())
	mpicx.Allgather(r.comm, []int{r.id}, members).MustWait(ctx)
	r.shrunk++
	r.layout = &layout{members: members}
	return r.takePart(ctx)
}

// takeOver brings the iterate to where the rows are now, and interpolates what
// was lost with the ranks that are gone. It changes nothing that a later attempt
// needs, since another rank may be lost meanwhile: settle does, which succeeds at
// all ranks or at none.
func (r *rank) takeOver(ctx context.Context, e *event) (settle func()) {
	e.Corrupted = true
	for _, m := range r.has.members {
		if !slices.Contains(r.layout.members, m) && !slices.Contains(r.unwound, m) {
			e.Dead = append(e.Dead, m)
		}
	}
	held := r.holdings(ctx)
	x, lost := r.move(ctx, held)
	t := &takeover{Ranks: len(r.layout.members), Rows: r.sys.a.Size(), Shrunk: r.shrunk}
	t.Moved, t.Lost = r.layout.moves(held)
	r.interpolate(ctx, x, lost, t)
	e.Takeover = t

	return func() {
		// Agree, unlike a Barrier, ends alike at all ranks, whoever dies meanwhile.
		r.comm.Agree(1).MustWait(ctx)
		r.x, r.has, r.shrunk = x, r.layout, 0
		r.xDone, r.residual = e.From, float64(t.After)
		r.resume = nil
		r.saved = checkpoints{} // they are of other rows
		r.saved.next(e.From).X = slices.Clone(x)
	}
}

// holdings returns the rows of which each rank has the iterate. A rank whose part
// can't be trusted has none: it is as lost as that of the dead.
func (r *rank) holdings(ctx context.Context) []span {
	mine := r.has.part(slices.Index(r.has.members, r.id))
	if !allFinite(r.x) || slices.ContainsFunc(r.failures, func(f mpicx.Failure) bool { return f.Rank == r.id && f.Code == codeGap }) {
		mine.hi = mine.lo
	}
	bounds := make([]int, 2*r.comm.Size())
	mpicx.Allgather(r.comm, []int{mine.lo, mine.hi}, bounds).MustWait(ctx)
	held := make([]span, r.comm.Size())
	for i := range held {
		held[i] = span{bounds[2*i], bounds[2*i+1]}
	}
	return held
}

// move returns the iterate in the rows that the rank has now, and which of its
// elements nobody held: they are 0. Both layouts divide the rows in the order of
// ranks, so that what goes to each rank, and comes from it, is contiguous.
func (r *rank) move(ctx context.Context, held []span) (x []float64, lost []bool) {
	me := r.comm.Rank()
	mine := r.layout.part(me)
	to, from := make([]int, len(held)), make([]int, len(held))
	arriving := 0
	for q := range held {
		to[q] = held[me].and(r.layout.part(q)).rows()
		from[q] = held[q].and(mine).rows()
		arriving += from[q]
	}
	packed := make([]float64, arriving)
	mpicx.Alltoallv(r.comm, r.x[:held[me].rows()], to, packed, from).MustWait(ctx)

	x, lost = make([]float64, mine.rows()), slices.Repeat([]bool{true}, mine.rows())
	for q := range held {
		first := held[q].and(mine).lo - mine.lo
		for i := range from[q] {
			x[first+i], lost[first+i] = packed[i], false
		}
		packed = packed[from[q]:]
	}
	return x, lost
}

// interpolate fills in the lost elements of x, if that makes the residual smaller
// than zeros do: the block of the matrix in the lost rows may be singular.
func (r *rank) interpolate(ctx context.Context, x []float64, lost []bool, t *takeover) {
	cfg := r.trial.cfg
	before := r.residualBefore(ctx)
	zeroed := r.sys.TrueResidual(ctx, x)

	// An error in these rows that is a tenth of the others' does not show.
	const part = 0.1
	y := slices.Clone(x)
	res, err := krylov.Interpolate(ctx, r.sys.System, y, lost, methods[cfg.method], krylov.Options{
		Tol: part * max(before, cfg.tol), MaxIter: min(t.Lost, cfg.maxIter), Restart: cfg.cycle,
	})
	after := math.NaN()
	if err == nil { // a *krylov.BreakdownError, which all ranks have alike
		after = r.sys.TrueResidual(ctx, y)
	}
	t.Before, t.Zeroed, t.After, t.Iterations = float(before), float(zeroed), float(after), res.Iterations
	if t.Interpolated = after < zeroed; t.Interpolated {
		copy(x, y)
	} else {
		t.After = t.Zeroed
	}
}

// residualBefore is the residual that the ranks saw last; it was finite, unless
// that was the fault.
func (r *rank) residualBefore(ctx context.Context) float64 {
	mine, least := []float64{r.residual}, make([]float64, 1)
	if math.IsNaN(r.residual) {
		mine[0] = math.Inf(1)
	}
	mpicx.Allreduce(r.comm, mine, least, mpicx.Min).MustWait(ctx)
	if math.IsInf(least[0], 1) {
		return 1 // as at the beginning
	}
	return least[0]
}
