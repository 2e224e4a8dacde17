package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

// maxRecoveries is how often a run recovers before it gives up.
const maxRecoveries = 20

// A trial is one run: a system, its faults, and the recovery.
type trial struct {
	name   string
	cfg    *config
	out    reports
	ranks  []*rank // of this process, which are all unless -tags mpi
	mpiRun int     // how many times mpicx.Run has been called
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
	sys      *system
	watched  krylov.System // sys with the detector looking on
	detector *detector
	injector *injector
	saved    checkpoints
	out      outcome // what the rank knows of the run: any may come to lead
	began    time.Time
	ended    time.Time

	done     int             // iterations, the same at all ranks whenever they compare
	xDone    int             // how many of them are in x
	residual float64         // after them, as the method's recursion has it
	failures []mpicx.Failure // by ranks of the world
	rounds   int             // of errors that all ranks got
	attempts int             // to recover, as all agreed
	shrunk   int             // how often, since x has been of all rows
	unwound  []int           // who left by a panic, in the world
	rerun    bool            // this mpicx.Run is not the trial's first, and has not recovered yet
	resume   *krylov.Snapshot

	told     atomic.Pointer[time.Time] // when a peer's error arrived
	ready    time.Time                 // when it was complete
	died     time.Time                 // in this mpicx.Run
	finished bool                      // this mpicx.Run, with all it was to do
}

// leads says whether the rank is the one that reports: the first that lives.
func (r *rank) leads() bool { return r.comm.Rank() == 0 }

func newTrial(name string, cfg *config, out reports) *trial {
	return &trial{name: name, cfg: cfg, out: out, ranks: make([]*rank, cfg.ranks)}
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
			return nil, setup
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
		r = &rank{trial: t, id: world.Rank(), out: outcome{Name: t.name, Recovery: t.cfg.recovery, MaxIter: t.cfg.maxIter}}
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

func (e *setupError) Error() string {
	if p, ok := errors.AsType[*mpicx.PropagatedError](e.err); ok {
		return p.Failures[0].Message // of rank 0, which reads
	}
	return e.err.Error()
}
func (e *setupError) Unwrap() error { return e.err }

// hopeless says whether the method broke down, which it would do again.
func hopeless(p *mpicx.PropagatedError) bool {
	return !slices.ContainsFunc(p.Failures, func(f mpicx.Failure) bool { return f.Code != codeBreakdown })
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
	r.comm = world
	r.layout = &layout{members: make([]int, world.Size())}
	for i := range r.layout.members {
		r.layout.members[i] = i
	}
	r.rerun, r.finished, r.failures, r.died = r.trial.mpiRun > 0, false, nil, time.Time{}
	r.told.Store(nil)
}

// setUp takes the rank's part of the system, and begins at 0.
func (r *rank) setUp(ctx context.Context) error {
	if err := r.takePart(ctx); err != nil {
		return err
	}
	r.x, r.residual = make([]float64, len(r.sys.B)), 1
	r.has = r.layout
	if err := r.comm.Barrier().Wait(ctx); err != nil {
		return err
	}
	if r.trial.mpiRun == 0 {
		r.began = time.Now()
	}
	return nil
}

// takePart reads the rank's part of the system on its communicator.
func (r *rank) takePart(ctx context.Context) (err error) {
	cfg := r.trial.cfg
	if r.sys, err = readSystem(ctx, r.comm, cfg); err != nil {
		return err
	}
	r.layout.offsets = r.sys.a.Offsets
	r.out.rows, r.out.nnz = r.sys.a.Size(), r.sys.nnz
	r.detector, r.watched = newDetector(r.sys, cfg.tol), r.sys.System
	if cfg.recovery != recoverNone {
		r.watched = r.detector.watch(r.sys.System)
	}
	return nil
}

// solve runs the method from x, or from r.resume, and collects the solution.
func (r *rank) solve(ctx context.Context) error {
	t := r.trial
	const enough = 5 // rounds of making up for rounding
	var res krylov.Result
	for range enough {
		r.detector.forget()
		var err error
		res, err = methods[t.cfg.method](ctx, r.watched, r.x, krylov.Options{
			Tol: t.cfg.tol, MaxIter: t.cfg.maxIter - r.done, Restart: t.cfg.cycle,
			Observe: r.observer(r.done), From: r.resume,
		})
		r.resume = nil
		if _, ok := errors.AsType[*krylov.BreakdownError](err); ok {
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
		if r.watched.TrueResidual(ctx, r.x) <= t.cfg.tol {
			break
		}
	}
	return r.collect(ctx, res)
}

// observer returns what is to be done between iterations, after the first base.
func (r *rank) observer(base int) func(context.Context, *krylov.State) error {
	cfg := r.trial.cfg
	return func(ctx context.Context, s *krylov.State) error {
		r.done++
		r.xDone = r.done
		if s.R == nil { // GMRES changes x at the end of a cycle
			r.xDone = base + (s.Iter-1)/cfg.cycle*cfg.cycle
		}
		r.residual = s.Residual
		r.noteResidual(s.Residual)
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

// noteResidual notes the residual after r.done iterations. Of those that the rank
// has missed, because others were an iteration ahead when an error came, it has none.
func (r *rank) noteResidual(residual float64) {
	for len(r.out.Residuals) < r.done-1 {
		r.out.Residuals = append(r.out.Residuals, float(nan))
	}
	r.out.Residuals = append(r.out.Residuals, float(residual))
	if r.leads() {
		r.trial.out.iteration(r.trial.name, r.done, residual)
	}
}

// collect looks at the solution, with a product that nobody watches.
func (r *rank) collect(ctx context.Context, res krylov.Result) error {
	t, o := r.trial, &r.out
	r.ended = time.Now()
	o.Claimed, o.Recursive = res.Converged, float(res.Residual)
	o.TrueResidual = float(r.sys.TrueResidual(ctx, r.x))
	if r.sys.want != nil {
		e := float(r.sys.distance(ctx, r.x))
		o.Error = &e
	}
	o.Converged = float64(o.TrueResidual) <= t.cfg.tol
	if t.cfg.out != "" {
		if r.leads() {
			o.solution = make([]float64, r.sys.a.Size())
		}
		mpicx.Gatherv(r.comm, r.x, o.solution, r.sys.a.Counts(), 0).MustWait(ctx)
	}
	all := mpicx.AllgatherValue(r.comm, r.injector.injections).MustGet(ctx)
	o.Injections = slices.Concat(all...)
	return nil
}

// reporter is the leader, or nil if that is of another process. Who has been lost
// may believe to lead as well.
func (t *trial) reporter() (lead *rank) {
	for _, r := range t.ranks {
		if r != nil && r.leads() && (lead == nil || r.finished || !lead.died.IsZero()) {
			lead = r
		}
	}
	return lead
}

// finish returns the outcome of a run that ended with err, as a rank of this process
// has it.
func (t *trial) finish(err error) *outcome {
	r := t.reporter()
	if r == nil {
		r = t.ranks[slices.IndexFunc(t.ranks, func(r *rank) bool { return r != nil })]
	}
	o := &r.out
	if err != nil {
		o.Failure = firstCause(err)
		o.Converged = false
		o.TrueResidual = float(nan)
		o.Recursive = float(nan)
		r.ended = time.Now()
	}
	for _, r := range t.ranks {
		if r == nil {
			continue
		}
		o.Iterations = max(o.Iterations, r.done) // an error may have ended one sooner
		if !slices.ContainsFunc(o.Injections, func(i injection) bool { return i.Rank == r.id }) {
			o.Injections = append(o.Injections, r.injector.injections...)
		}
	}
	o.inferInjections(t.cfg.faults)
	for i := range o.Injections {
		if inj := &o.Injections[i]; !inj.Fired {
			inj.At = r.ended // after the others
		}
	}
	slices.SortStableFunc(o.Injections, func(a, b injection) int { return a.At.Compare(b.At) })
	o.Seconds = r.ended.Sub(r.began).Seconds()
	o.attribute()
	return o
}

// firstCause is the text of the error that began it all.
func firstCause(err error) string {
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
		return fmt.Sprintf("rank %d panicked: %v", p.Rank, p.Value)
	}
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
		if hopeless(p) { // all ranks say the same
			return p.Failures[0].Message
		}
		return p.Failures[0].String()
	}
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok && len(c.Failures) > 0 {
		return c.Failures[0].String()
	}
	return err.Error()
}
