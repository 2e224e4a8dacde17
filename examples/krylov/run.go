package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/examples/krylov/distributed"
	"github.com/mpicx/go-mpicx/examples/krylov/solver"
	"github.com/mpicx/go-mpicx/examples/krylov/sparse"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// maxRecoveries is how often a run recovers before it gives up.
const maxRecoveries = 20

// A trial is one run: a system, its faults, and the recovery.
type trial struct {
	name   string
	cfg    *config
	prob   *problem
	out    reports
	ranks  []*rank              // of this process, which are all unless -tags mpi
	out0   outcome              // the leader fills it in
	lead   atomic.Pointer[rank] // the leader, if it is of this process
	began  time.Time
	ended  time.Time
	mpiRun int // how many times mpicx.Run has been called
}

// A rank is what one rank has. It outlives mpicx.Run, as a checkpoint in a file
// or a neighbour's memory would.
type rank struct {
	trial  *trial
	id     int         // in the world
	comm   *mpicx.Comm // the world, or what is left of it
	layout *layout     // of comm

	x        []float64
	has      *layout // whose rows x is of: an earlier one until rows have been moved
	sys      solver.System
	plain    solver.System // sys without a detector
	detector *detector
	injector *injector
	saved    checkpoints

	done     int             // iterations, the same at all ranks whenever they compare
	xDone    int             // how many of them are in x
	residual float64         // after them, as the method's recursion has it
	failures []mpicx.Failure // by ranks of the world
	rounds   int             // of errors that all ranks got
	attempts int             // to recover, as all agreed
	shrunk   int             // how often, since x has been of all rows
	unwound  []int           // who left by a panic, in the world
	rerun    bool            // this mpicx.Run is not the trial's first, and has not recovered yet
	resume   *solver.Snapshot

	told     atomic.Pointer[time.Time] // when a peer's error arrived
	ready    time.Time                 // when it was complete
	died     time.Time                 // in this mpicx.Run
	finished bool                      // this mpicx.Run, with all it was to do
}

// leads says whether the rank is the one that reports: the first that lives.
func (r *rank) leads() bool { return r.comm.Rank() == 0 }

func newTrial(name string, cfg *config, prob *problem, out reports) *trial {
	t := &trial{name: name, cfg: cfg, prob: prob, out: out, ranks: make([]*rank, cfg.ranks)}
	t.out0 = outcome{Name: name, Recovery: cfg.recovery, MaxIter: cfg.maxIter, Injections: []injection{}, Events: []event{}, Residuals: []float{}}
	return t
}

// run makes the run. An error is one that is no part of what this program shows.
func (t *trial) run(ctx context.Context) (*outcome, error) {
	for {
		err := mpicx.Run(ctx, t.rankMain, mpicx.WithRanks(t.cfg.ranks))
		t.mpiRun++
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if setup, ok := errors.AsType[*setupError](err); ok {
			return nil, setup.err
		}
		if err != nil && !slices.ContainsFunc(t.ranks, func(r *rank) bool { return r != nil }) {
			return nil, err // it has not begun
		}
		err = t.conclude(err)
		if isEnd(err) {
			t.noteCorruption(err)
		}
		// A rank that panicked or died is not there any more, and its communicator is
		// of no use. If the survivors were not told to go on without it, what is left
		// to do is what an operator would, start the job again from the last
		// checkpoint.
		again := t.cfg.recovery == recoverRestart || t.cfg.recovery == recoverRollback
		if again && t.mpiRun <= maxRecoveries && isEnd(err) && t.isInjected(err) {
			continue
		}
		return t.finish(err), nil
	}
}

// rankMain is what each rank does: the layers are those of the package's
// documentation.
func (t *trial) rankMain(ctx context.Context, world *mpicx.Comm) error {
	if world.Size() != t.cfg.ranks {
		return &setupError{fmt.Errorf("-ranks %d, expected %d, as the job has so many", t.cfg.ranks, world.Size())}
	}
	r := t.ranks[world.Rank()]
	if r == nil {
		r = &rank{trial: t, id: world.Rank()}
		r.injector = newInjector(t.cfg.faults, r.id, r.die)
		t.ranks[r.id] = r
	}
	r.join(world)
	err := r.guarded(ctx, r.setUp)
	for t.cfg.recovery == recoverShrink && r.lostPeers(err) {
		var rest *mpicx.Comm
		if rest, err = r.comm.Shrink().Get(ctx); err == nil {
			r.comm = rest
			err = r.guarded(ctx, r.regroup)
		}
	}
	r.finished = err == nil
	return err
}

// guarded is the rank's life on a communicator, which begins with setUp.
func (r *rank) guarded(ctx context.Context, setUp func(context.Context) error) error {
	// Outermost: whoever leaves here by an error or a panic corrupts the
	// communicator, so that nobody waits for it.
	err := r.comm.Guard(ctx, func(ctx context.Context) error {
		defer r.listen(ctx)()
		if err := r.comm.TryAll(ctx, setUp); err != nil {
			if isEnd(err) {
				return err
			}
			return &setupError{err}
		}
		if r.trial.cfg.recovery == recoverNone {
			return r.solve(ctx)
		}
		for {
			// Innermost: a local error becomes everyone's. TryAll, since a rank must not
			// go home while another is still checking its result.
			err := r.comm.TryAll(ctx, func(ctx context.Context) error {
				defer r.listen(ctx)()
				if err := r.recover(ctx); err != nil {
					return err
				}
				return r.solve(ctx)
			})
			p, ok := errors.AsType[*mpicx.PropagatedError](err)
			if !ok || r.rounds >= maxRecoveries || hopeless(p) {
				return err
			}
			r.rounds++
			r.ready = time.Now()
			r.noteFailures(p.Failures)
		}
	})
	if isEnd(err) {
		r.ready = time.Now()
	}
	return err
}

// noteFailures adds what all ranks of the communicator were told.
func (r *rank) noteFailures(failures []mpicx.Failure) {
	for _, f := range failures {
		f.Rank = r.layout.members[f.Rank]
		r.failures = append(r.failures, f)
	}
}

func (r *rank) die() {
	r.died = time.Now()
	inject.Die(r.comm)
}

// A setupError says that the run could not begin.
type setupError struct{ err error }

func (e *setupError) Error() string { return e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }

// hopeless says whether the method broke down, which it would do again.
func hopeless(p *mpicx.PropagatedError) bool {
	for _, f := range p.Failures {
		if f.Code != codeBreakdown {
			return false
		}
	}
	return true
}

// listen notes when ctx ends because of a peer's error, until it is called off.
func (r *rank) listen(ctx context.Context) (callOff func()) {
	stop := context.AfterFunc(ctx, func() {
		now := time.Now()
		r.told.CompareAndSwap(nil, &now)
	})
	return func() { stop() }
}

// join begins an mpicx.Run. Of an earlier one only the checkpoints are left.
func (r *rank) join(world *mpicx.Comm) {
	r.comm, r.layout = world, r.trial.prob.layout()
	r.rerun, r.finished, r.failures, r.died = r.trial.mpiRun > 0, false, nil, time.Time{}
	r.told.Store(nil)
}

// setUp takes the rank's part of the system, and begins at 0.
func (r *rank) setUp(ctx context.Context) error {
	if err := r.takePart(); err != nil {
		return err
	}
	r.x, r.residual = make([]float64, len(r.sys.B)), 1
	r.has = r.layout
	if err := r.comm.Barrier().Wait(ctx); err != nil {
		return err
	}
	if r.leads() {
		r.trial.lead.Store(r)
	}
	if r.trial.mpiRun == 0 && (r.leads() || processes > 1) { // under mpirun each may come to lead
		r.trial.began = time.Now()
	}
	return nil
}

// takePart takes the rank's part of the system in the layout.
func (r *rank) takePart() error {
	t := r.trial
	local, err := sparse.Localize(t.prob.m, r.layout.offsets, r.comm.Rank())
	if err != nil {
		return err
	}
	sys := solver.System{
		Space: distributed.Space{Comm: r.comm},
		A:     distributed.NewOperator(r.comm, local),
		B:     t.prob.b[local.First : local.First+local.Rows],
	}
	switch t.cfg.precond {
	case "jacobi":
		sys.M, err = distributed.Jacobi(local)
	case "blockjacobi":
		sys.M, err = distributed.BlockJacobi(local)
	}
	if err != nil {
		return err
	}
	r.sys, r.plain = sys, sys
	r.detector = newDetector(t.prob, t.cfg.tol, local.First, sys.B)
	if t.cfg.recovery != recoverNone {
		r.sys = r.detector.watch(sys)
	}
	return nil
}

// solve runs the method from x, or from r.resume, and collects the solution.
func (r *rank) solve(ctx context.Context) error {
	t := r.trial
	const enough = 5 // rounds of making up for rounding
	var res solver.Result
	for range enough {
		r.detector.forget()
		var err error
		res, err = methods[t.cfg.method](ctx, r.sys, r.x, solver.Options{
			Tol: t.cfg.tol, MaxIter: t.cfg.maxIter - r.done, Restart: t.cfg.cycle,
			Observe: r.observer(r.done), From: r.resume,
		})
		r.resume = nil
		if _, ok := errors.AsType[*solver.BreakdownError](err); ok {
			return &finding{codeBreakdown, err.Error()}
		}
		if err != nil {
			return err
		}
		if t.cfg.recovery == recoverNone || !res.Converged {
			break
		}
		// The recursion may be wrong about the residual, by rounding or by a fault
		// after the last check. If it is, go on from here.
		if r.sys.TrueResidual(ctx, r.x) <= t.cfg.tol {
			break
		}
	}
	return r.collect(ctx, res)
}

// observer returns what is to be done between iterations, after the first base.
func (r *rank) observer(base int) func(context.Context, *solver.State) error {
	cfg := r.trial.cfg
	return func(ctx context.Context, s *solver.State) error {
		r.done++
		r.xDone = r.done
		if s.R == nil { // GMRES changes x at the end of a cycle
			r.xDone = base + (s.Iter-1)/cfg.cycle*cfg.cycle
		}
		r.residual = s.Residual
		if r.leads() {
			r.trial.out0.Residuals = append(r.trial.out0.Residuals, float(s.Residual))
			r.trial.out.iteration(r.trial.name, r.done, s.Residual)
		}
		if cfg.recovery != recoverNone {
			save := r.done%cfg.checkpoint == 0
			if err := r.detector.iteration(ctx, s, save || r.done%cfg.check == 0); err != nil {
				return err
			}
			if save {
				s.Save(ctx, r.saved.next(r.done))
			}
		}
		return r.injector.strike(s, r.done)
	}
}

// collect brings the solution to the leader, which looks at it.
func (r *rank) collect(ctx context.Context, res solver.Result) error {
	t := r.trial
	var whole []float64
	if r.leads() || processes > 1 {
		t.ended = time.Now()
	}
	if r.leads() {
		whole = make([]float64, len(t.prob.b))
	}
	mpicx.Gatherv(r.comm, r.x, whole, r.layout.counts(), 0).MustWait(ctx)
	converged := false
	if r.leads() {
		converged = t.look(whole, res)
	}
	converged = mpicx.BcastValue(r.comm, converged, 0).MustGet(ctx)
	if t.lead.Load() == nil { // with -tags mpi: no process but one has the leader
		t.out0.Converged = converged
	}
	return nil
}

// look fills in what the leader sees in the solution.
func (t *trial) look(whole []float64, res solver.Result) (converged bool) {
	o := &t.out0
	o.Claimed, o.Recursive = res.Converged, float(res.Residual)
	o.TrueResidual = float(t.prob.trueResidual(whole))
	if t.prob.want != nil {
		e := float(t.prob.distance(whole))
		o.Error = &e
	}
	o.Converged = float64(o.TrueResidual) <= t.cfg.tol
	return o.Converged
}

// finish completes the outcome of a run that ended with err.
func (t *trial) finish(err error) *outcome {
	o := &t.out0
	if err != nil {
		o.Failure = firstCause(err)
		o.Converged = false
		o.TrueResidual = float(nan)
		o.Recursive = float(nan)
		t.ended = time.Now()
	}
	for _, r := range t.ranks {
		if r != nil {
			o.Iterations = max(o.Iterations, r.done) // an error may have ended one sooner
			o.Injections = append(o.Injections, r.injector.injections...)
		}
	}
	for i := range o.Injections {
		if inj := &o.Injections[i]; !inj.Fired {
			inj.at = t.ended // after the others
		}
	}
	slices.SortStableFunc(o.Injections, func(a, b injection) int { return a.at.Compare(b.at) })
	o.Seconds = t.ended.Sub(t.began).Seconds()
	o.attribute()
	return o
}

// firstCause is the text of the error that began it all.
func firstCause(err error) string {
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
		return fmt.Sprintf("rank %d panicked: %v", p.Rank, p.Value)
	}
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
		return p.Failures[0].String()
	}
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok && len(c.Failures) > 0 {
		return c.Failures[0].String()
	}
	return err.Error()
}
