package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/examples/krylov/detect"
	"github.com/mpicx/go-mpicx/examples/krylov/fault"
	"github.com/mpicx/go-mpicx/examples/krylov/report"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// maxRecoveries is how often a run recovers before it gives up.
const maxRecoveries = 20

// A trial is one run: a system, its faults, and the recovery.
type trial struct {
	name string
	cfg  *config
	out  report.Reports
	jobs int // started so far

	mu     sync.Mutex
	ranks  []*rank           // of this process: all, unless there is a launcher
	deaths map[int]time.Time // of this process's ranks, in this job
}

// A rank is the state of one rank. It outlives mpicx.Run, unless the rank dies.
type rank struct {
	trial    *trial
	id       int // in the world
	comm     *mpicx.Comm
	members  []member // of comm
	lead     int      // the leader's rank in comm
	sys      *system  // on comm
	watched  krylov.System
	detector *detect.Detector
	injector *fault.Injector

	store *checkpoint.Store // keeps the states of all ranks
	kept  state             // the newest state saved here; Restore sets it

	x        []float64
	first    int // first row of x
	xDone    int // number of iterations of x
	residual float64
	resume   *krylov.Snapshot
	history

	told     atomic.Pointer[time.Time] // when a peer's error arrived
	ready    time.Time                 // when the error was complete
	ended    time.Time
	finished bool // finished all its work in this job
	lost     bool // has not come back from its job
}

// A history is known to all ranks alike whenever they meet, because any of them may become the
// leader.
type history struct {
	Out        report.Outcome
	Done       int      // iterations
	Recoveries int      // begun so far
	Mended     int      // handled causes of recovery.Run
	Members    []member // of the communicator at that time
	Began      time.Time
}

// A member is a rank of the world, in one of its incarnations.
type member struct{ ID, Turn int }

// A state is a rank's part of the saved state.
type state struct {
	rank, ranks int // this part, and the number of parts
	first       int // the row of its first element
	done        int // iterations
	method      krylov.Snapshot
}

// protect registers what must survive. Numbers are saved as they are; encoding them by gob would
// take as long as some iterations.
func (s *state) protect(store *checkpoint.Store) {
	store.Protect("rank", &s.rank)
	store.Protect("ranks", &s.ranks)
	store.Protect("first", &s.first)
	store.Protect("done", &s.done)
	store.Protect("x", &s.method.X)
	store.Protect("scalars", &s.method.Scalars)
	s.method.Vectors = make([][]float64, krylov.MaxVectors)
	for i := range s.method.Vectors {
		store.Protect(fmt.Sprint("vector ", i), &s.method.Vectors[i])
	}
}

// leads reports whether the rank is the leader, which reports: the first living rank whose process
// has been in all runs.
func (r *rank) leads() bool { return r.comm.Rank() == r.lead }

// isRescue reports whether the rank's process was a spare or fresh, and knows nothing of earlier runs.
func (r *rank) isRescue() bool { return processes > 0 && r.comm.Incarnation() > 0 }

// run makes the run. It returns no error of the kinds that this program demonstrates.
func (t *trial) run(ctx context.Context) (*report.Outcome, error) {
	for {
		t.deaths = make(map[int]time.Time)
		opts := []mpicx.Option{mpicx.WithRanks(t.cfg.Ranks), mpicx.WithSpares(t.cfg.spares()), mpicx.WithTimeline(t.cfg.timeline)}
		if t.cfg.respawn {
			opts = append(opts, mpicx.WithRespawn())
		}
		err := mpicx.Run(ctx, t.rankMain, opts...)
		t.jobs++
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok && p.Failures[0].Code == codeSetup {
			return nil, &setupError{p.Failures[0].Message}
		}
		if err != nil && !slices.ContainsFunc(t.ranks, func(r *rank) bool { return r != nil }) {
			return nil, err // it has not begun
		}
		if err == nil && !slices.ContainsFunc(t.ranks, func(r *rank) bool { return r != nil }) {
			return &report.Outcome{Name: t.name, Converged: true}, nil // not needed: a spare, or a fresh process
		}
		finished := slices.ContainsFunc(t.ranks, func(r *rank) bool { return r != nil && r.finished })
		switch injected := t.isInjected(err); {
		case finished && injected && t.cfg.repairs():
			return t.finish(nil), nil // without the ranks that are lost
		case err == nil && !finished:
			err = errAllDead
		}
		if !isEnd(err) {
			return t.finish(err), nil
		}
		t.noteEnd(err)
		// What remains is to start the job again, as an operator would. The checkpoints of lost
		// ranks are in their partners' memory.
		if again := t.cfg.recovery == recoverRestart || t.cfg.recovery == recoverRollback; !again || t.jobs > maxRecoveries || !t.isInjected(err) {
			return t.finish(err), nil
		}
	}
}

// rankMain is the program of each rank.
func (t *trial) rankMain(ctx context.Context, world *mpicx.Comm) error {
	if world.Size() != t.cfg.Ranks {
		return fmt.Errorf("-ranks %d, expected %d, as the job has so many", t.cfg.Ranks, world.Size())
	}
	r := t.join(world)
	r.lost = true // set again when it comes back
	err := r.main(ctx, world)
	r.lost = false
	return err
}

// join returns the rank at the beginning of a job. A new rank in its place has only the list of
// faults that have struck there.
func (t *trial) join(world *mpicx.Comm) *rank {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ranks[world.Rank()]
	if r == nil || r.lost {
		old := r
		r = &rank{trial: t, id: world.Rank()}
		r.Out = report.Outcome{Name: t.name, Recovery: t.cfg.recovery, MaxIter: t.cfg.maxIter}
		if old != nil {
			r.injector = old.injector
			if t.jobs > 0 {
				r.history = old.history // it has been printed already
			}
		} else {
			r.injector = fault.NewInjector(t.cfg.faults, r.id)
		}
		t.ranks[r.id] = r
	}
	r.comm, r.lead, r.finished, r.Mended = world, 0, false, 0
	r.told.Store(nil)
	return r
}

// main is the rank's part of a job.
func (r *rank) main(ctx context.Context, world *mpicx.Comm) (err error) {
	switch r.trial.cfg.recovery {
	case recoverNone:
		err = world.Guard(ctx, func(ctx context.Context) error { return r.attempt(ctx, &recovery.Attempt{Comm: world}) })
	case recoverReplace:
		err = r.recovered(ctx, world, recovery.Replace(), recovery.ElseShrink())
	case recoverShrink:
		err = r.recovered(ctx, world, recovery.Shrink())
	default: // other errors end the job
		err = r.recovered(ctx, world)
	}
	if isEnd(err) {
		r.ready = time.Now()
	}
	r.finished = err == nil
	return err
}

func (r *rank) recovered(ctx context.Context, world *mpicx.Comm, opts ...recovery.Option) error {
	err := recovery.Run(ctx, world, r.attempt, append(opts, recovery.MaxAttempts(maxRecoveries))...)
	if err == nil {
		_ = r.store.Close(ctx) // a rank that dies now has finished its work
	}
	return err
}

// attempt solves the system on the living ranks. recovery.Run calls it until it succeeds.
func (r *rank) attempt(ctx context.Context, a *recovery.Attempt) (err error) {
	defer func() { r.ready = time.Now() }()
	defer r.listen(ctx)()
	if err := r.begin(ctx, a); err != nil {
		return err
	}
	return r.solve(ctx, a)
}

// listen notes when ctx ends because of a peer's error, until callOff is called.
func (r *rank) listen(ctx context.Context) (callOff func()) {
	stop := context.AfterFunc(ctx, func() {
		now := time.Now()
		r.told.CompareAndSwap(nil, &now)
	})
	return func() { stop() }
}

// An introduction is what a rank tells the others at the beginning of an attempt.
type introduction struct {
	Member member
	Fresh  bool // it has no state
	Away   bool // it has no system on this communicator yet
	Rescue bool
	Done   int
	XDone  int
}

// begin decides where to continue. All ranks decide alike, because each has told the others what
// the decision depends on.
func (r *rank) begin(ctx context.Context, a *recovery.Attempt) error {
	r.comm = a.Comm
	all, err := mpicx.AllgatherValue(r.comm, introduction{member{r.id, r.comm.Incarnation()}, r.sys == nil, r.sys == nil || r.sys.comm != r.comm, r.isRescue(), r.Done, r.xDone}).Get(ctx)
	if err != nil {
		return err
	}
	eldest, xDone := 0, 0
	r.members = nil
	for rank, it := range all {
		if !it.Fresh && (all[eldest].Fresh || it.Done > all[eldest].Done) {
			eldest = rank
		}
		xDone = max(xDone, it.XDone)
		r.members = append(r.members, it.Member)
	}
	r.lead = max(0, slices.IndexFunc(all, func(i introduction) bool { return !i.Rescue }))
	begun := !all[eldest].Fresh || r.trial.jobs > 0
	if begun {
		if r.history, err = mpicx.BcastValue(r.comm, r.history, eldest).Get(ctx); err != nil {
			return err
		}
		if r.isRescue() && r.sys == nil {
			r.injector.Inherit(r.Done, r.Recoveries)
		}
	}
	if slices.ContainsFunc(all, func(i introduction) bool { return i.Away }) {
		if err := r.settle(ctx, a); err != nil {
			return err
		}
	}
	if !begun {
		r.x, r.first, r.residual = make([]float64, r.sys.a.Rows()), r.sys.a.First(), 1
		r.Began, r.Mended, r.Members = time.Now(), len(a.Causes), r.members
		return r.comm.Barrier().Wait(ctx)
	}
	if len(a.Causes) == 0 { // the job was started again
		r.Mended, r.Members = 0, r.members
	}
	return r.recover(ctx, a, slices.ContainsFunc(all, func(i introduction) bool { return i.Fresh }), xDone)
}

// settle reads the system on a new communicator, and opens the store there.
func (r *rank) settle(ctx context.Context, a *recovery.Attempt) error {
	cfg := r.trial.cfg
	sys, err := readSystem(ctx, r.comm, cfg)
	if failed := setUpFailed(err); failed != nil {
		return a.GiveUp(failed)
	} else if err != nil {
		return err
	}
	r.sys = nil
	if cfg.recovery != recoverNone {
		if r.store == nil {
			if r.store, err = checkpoint.Open(ctx, r.comm, checkpoint.Partner(1)); err == nil {
				r.kept.protect(r.store)
			}
		} else if store, failed := r.store.Rejoin(ctx, r.comm); failed == nil {
			r.store = store
		} else {
			err = failed
		}
		if err != nil {
			return err
		}
	}
	r.sys = sys
	r.Out.Rows, r.Out.NNZ = sys.a.Size(), sys.nnz
	r.detector = detect.New(detect.Settings{Tol: cfg.Tol, First: sys.a.First(), NormA: sys.normA, NormB: sys.normB})
	r.watched = sys.System
	if cfg.recovery != recoverNone {
		r.watched = r.detector.Watch(sys.System)
	}
	return nil
}

// solve runs the method from x, or from r.resume, and checks the solution.
func (r *rank) solve(ctx context.Context, a *recovery.Attempt) error {
	cfg := r.trial.cfg
	const enough = 5 // rounds that correct rounding errors
	var res krylov.Result
	for range enough {
		r.detector.Forget()
		var err error
		res, err = methods[cfg.Method](ctx, r.watched, r.x, krylov.Options{
			Tol: cfg.Tol, MaxIter: cfg.maxIter - r.Done, Restart: cfg.GMRESRestart,
			Observe: r.observer(r.Done), From: r.resume,
		})
		r.resume = nil
		if _, ok := errors.AsType[*krylov.BreakdownError](err); ok { // it would break down again
			return a.GiveUp(&detect.Finding{Code: detect.CodeBreakdown, Text: err.Error()})
		}
		if err != nil {
			return err
		}
		if cfg.recovery == recoverNone || !res.Converged {
			break
		}
		// The residual of the recursion may be wrong, by rounding or by a fault after the last
		// check. If it is, continue from here.
		if r.watched.TrueResidual(ctx, r.x) <= cfg.Tol {
			break
		}
	}
	return r.look(ctx, res)
}
