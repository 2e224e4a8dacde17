package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/examples/krylov/report"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// observer returns the function to call between iterations, which are counted from base.
func (r *rank) observer(base int) func(context.Context, *krylov.State) error {
	cfg := r.trial.cfg
	return func(ctx context.Context, s *krylov.State) error {
		r.Done++
		r.xDone = r.Done
		if s.R == nil { // GMRES changes x only at the end of a cycle
			r.xDone = base + (s.Iter-1)/cfg.GMRESRestart*cfg.GMRESRestart
		}
		r.noteResidual(s.Residual)
		if cfg.recovery != recoverNone {
			save := r.Done%cfg.Checkpoint == 0
			if err := r.detector.Iteration(ctx, s, save || r.Done%cfg.Check == 0); err != nil {
				return err
			}
			if save {
				r.kept.rank, r.kept.ranks, r.kept.first, r.kept.done = r.comm.Rank(), r.comm.Size(), r.sys.a.First(), r.Done
				s.Save(ctx, &r.kept.method)
				r.store.Save(ctx, r.Done)
			}
		}
		return r.injector.Strike(s, r.Done, r.die)
	}
}

func (r *rank) die() {
	r.trial.mu.Lock()
	r.trial.deaths[r.id] = time.Now()
	r.trial.mu.Unlock()
	inject.Die(r.comm)
}

// noteResidual notes the residual after r.Done iterations. Iterations that the rank has missed,
// because others were one ahead when an error came, have none.
func (r *rank) noteResidual(residual float64) {
	r.residual = residual
	for len(r.Out.Residuals) < r.Done-1 {
		r.Out.Residuals = append(r.Out.Residuals, report.Float(math.NaN()))
	}
	r.Out.Residuals = append(r.Out.Residuals, report.Float(residual))
	if r.leads() {
		r.trial.out.Iteration(r.trial.name, r.Done, residual)
	}
}

// look checks the solution, with a product that the detector does not watch.
func (r *rank) look(ctx context.Context, res krylov.Result) error {
	o := &r.Out
	r.ended = time.Now()
	o.Claimed, o.Recursive = res.Converged, report.Float(res.Residual)
	o.TrueResidual = report.Float(r.sys.TrueResidual(ctx, r.x))
	if r.sys.want != nil {
		e := report.Float(r.sys.distance(ctx, r.x))
		o.Error = &e
	}
	o.Converged = float64(o.TrueResidual) <= r.trial.cfg.Tol
	if r.trial.cfg.solution != "" {
		if r.leads() {
			o.Solution = make([]float64, r.sys.a.Size())
		}
		mpicx.Gatherv(r.comm, r.x, o.Solution, r.sys.a.Counts(), r.lead).MustWait(ctx)
	}
	all := mpicx.AllgatherValue(r.comm, r.injector.Injections).MustGet(ctx)
	o.Injections = slices.Concat(all...)
	return nil
}
