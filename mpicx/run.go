package mpicx

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/replace"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Run starts a job and calls fn at each rank with the communicator of all ranks, the world
// (MPI_Init, MPI_COMM_WORLD, MPI_Finalize). It returns when fn has returned at all ranks, and the
// collective operations that they have begun have ended: nil, or the errors of the ranks that
// failed. A panic becomes a *PanicError, and runtime.Goexit becomes ErrGoexit. A rank whose fn
// returns nil fails nevertheless if one of its operations has failed, and nobody has waited for it:
// with the panic of a reduction's function, or with an *MPIError, such as that of a Send to a rank
// which does not exist, or of a collective call that differs from a peer's, or that a peer never
// makes. A failure that an error of the communicator has followed does not count.
//
// Without a launcher the ranks are goroutines of this process. Run may then be called often, and
// from several goroutines.
//
// A rank that leaves fn by an error, a panic or runtime.Goexit corrupts the world for its peers, as
// Guard does, or, if the world is corrupted already, the communicators that they use by then. With
// -tags ulfm such a rank is dead for its peers, and so is a rank that has returned as soon as a
// peer needs it. Under ErrorsReturn the peers only learn of the death.
//
// If ctx reaches its deadline, Run prints what the ranks are waiting for to standard error, as
// Diagnose describes it, once for the job. It also does so on SIGUSR1, sent to any process of the
// job or to mpicxrun, before SIGQUIT ends a process, and when all ranks wait and none has begun or
// ended an operation for 10 s. MPICX_DIAGNOSE=off turns all but the deadline off.
//
// A process that mpicxrun has started is one rank of mpicxrun's job. With -tags mpi, a process that
// mpirun or another launcher has started is one rank of the launcher's job. In such a process Run
// calls fn once and returns the error of this rank. It waits for all processes before it returns,
// because a peer may need this one to pass on its error. If ctx ends before all processes have
// started, the error names those that are missing.
//
// Such a job can begin only once in a process. A program that calls Run several times there, in the
// same order at all processes, first calls [Initialize]; then Finalize waits for the other
// processes, and Run does not. Initialize is also for programs that cannot pass a function to Run.
func Run(ctx context.Context, fn func(ctx context.Context, world *Comm) error, opts ...Option) error {
	switch {
	case ctx == nil:
		return mpiErrorf("Run", ClassOther, nilContext)
	case fn == nil:
		return mpiErrorf("Run", ClassOther, nilFunction)
	}
	o := newOptions(opts)
	if o.err != nil {
		return o.err
	}
	stops := o.watchStops()
	defer stops.end()
	j, err := startJob(ctx, o, DefaultRanks)
	if err != nil {
		return err
	}
	var mu sync.Mutex           // protects errs and ended while ranks run
	errs := make(map[int]error) // by the rank in the world, or in the pool if it has had no place there
	type incarnation struct {
		root *comm // its first communicator
		rank int   // as in errs
	}
	ended := make([]incarnation, 0, len(j.sides))
	reporter := report(ctx, o)
	run := func(t transport.Comm) {
		root, err := newRoot(t, o, j)
		rank := t.Rank()
		defer func() { // runtime.Goexit gets here too
			mu.Lock()
			defer mu.Unlock()
			if root != nil {
				ended = append(ended, incarnation{root, rank})
			}
			if err != nil {
				if before := errs[rank]; before != nil { // of another incarnation
					err = errors.Join(before, err)
				}
				errs[rank] = err
			}
		}()
		switch {
		case err != nil:
		case j.unfit != nil:
			err = j.unfit
			root.refuse(err)
		default:
			reporter.add(root)
			stops.add(root)
			root.runRank(ctx, fn, &rank, &err)
		}
	}
	ranks := newRankGroup(len(j.sides))
	if j.later != nil {
		j.start = func(rank int) {
			if i := rank - len(j.sides); ranks.admit(rank) {
				go ranks.work(func() { run(j.later[i]) })
			}
		}
	}
	for _, t := range j.sides {
		go ranks.work(func() { run(t) })
	}
	<-ranks.done
	stops.end()
	reporter.End(errors.Join(slices.Collect(maps.Values(errs))...))
	differ := func(processes bool) { // messages of processes come until the job's end
		for _, e := range ended {
			if err := e.root.untoldMismatch(); err != nil && errs[e.rank] == nil && processes == (e.root.proc.driver != nil) {
				errs[e.rank] = err
			}
		}
	}
	// The messages of goroutine ranks have all come. So their mismatches are known, and what they
	// have left behind, which finish ends.
	differ(false)
	if o.set.Left != nil && len(errs) == 0 {
		for _, e := range ended {
			o.set.Left(e.rank, e.root.leftovers())
		}
	}
	over := make(map[string]error)
	for _, e := range ended {
		e.root.finish(over)
	}
	err = j.end()
	differ(true)
	switch {
	case len(errs) == 0 && j.unfit != nil: // this process has no rank of the world
		return errors.Join(j.unfit, err)
	case len(errs) == 0:
		return err
	}
	err = &ranksError{errs}
	if s := onlyStop(errs); s != nil {
		err = s
	}
	// The process whose own error this is has to exit first: see job.courtesy.
	if hasType[*CommCorruptedError](err) {
		time.Sleep(j.courtesy)
	}
	return err
}

// newRoot makes the first communicator of a rank: the world or, if there are spares or fresh ranks,
// the pool. The pool is under ErrorsReturn, so no death corrupts it: Replace still has to work
// there.
//
// From open on, other goroutines call into the rank, for messages that have arrived. So what they
// read is set before.
func newRoot(t transport.Comm, o *options, j *job) (root *comm, err error) {
	p := newProc(t, o)
	if o.set.Wrap != nil {
		t = o.set.Wrap(t)
	}
	dup, err := t.Sub(transport.ErrorChannelName(), nil)
	if err != nil {
		return nil, mpiError("Run", err)
	}
	root = newComm(p, t, nil, "world")
	p.carryOut, p.giveUp = root.carryOut, root.giveUp
	root.lineage = newLineage(root, j)
	if j.workers == nil {
		root.lineage.succeed(root)
	} else {
		root.name = "pool"
		root.errhandler.Store(int32(ErrorsReturn))
		root.lineage.pool = root
	}
	if p.observer = o.observer(p.rank); p.observer != nil {
		p.ledger.Quiet = false
		root.started()
	}
	if p.observer.SeesWaits() {
		p.waits = func(cells ...*waiting.Cell) func() { return p.observer.Waits(func() string { return nameOf(cells) }) }
		p.place = p.newPlace()
	}
	root.open(nil, dup, nil, t.Epoch(), true, false)
	if j.workers != nil {
		err = root.lineage.listen()
	}
	if p.driver != nil {
		p.driver.OnFailure(p.giveUp)
	}
	return root, err
}

// started tells the observer that the rank has begun. c is its first communicator.
func (c *comm) started() {
	size, rescue, fresh := c.size, false, c.lineage.start != nil
	if workers := c.lineage.workers; workers != nil {
		size, rescue = len(workers), c.lineage.isSpare()
	}
	c.proc.observer.Happened(observe.Event{Kind: observe.Start, Size: size, Spare: rescue && !fresh, Fresh: rescue && fresh})
}

// runRank runs the program of a rank, and waits for its pending collective calls. If the rank is a
// spare or a fresh rank, its program runs only if a Replace takes the rank. c is the rank's first
// communicator. runRank sets rank to the rank in the world, and err to the rank's error for Run.
// It sets them, and not results, because runtime.Goexit may end the program.
func (c *comm) runRank(ctx context.Context, fn func(context.Context, *Comm) error, rank *int, err *error) {
	*err = errUnwinding
	defer func() {
		if *err == errUnwinding { // by Goexit: Catch has made an error of a panic
			*err = c.proc.whyGoexit()
		}
		*err = ofRank(*err, *rank)
		if c.proc.dead.Load() {
			*err = nil // a dead rank reports nothing
			return
		}
		c.leave(*err)
	}()
	defer future.Catch(err)
	world, failed := c.lineage.world()
	if world == nil {
		*err = failed
		return
	}
	*rank = world.rank
	if *err = fn(ctx, &Comm{world}); *err == nil || stopIn(*err) != nil {
		*err = cmp.Or(c.settle(ctx), *err)
	}
}

// settle waits until the program's pending collective calls have ended. The program has returned
// nil. c is the rank's first communicator. If an operation of the rank has failed and no Wait has
// reported that, settle returns the error at once, because a rank that fails waits for nobody (C1).
//
// Peers may need this rank in a call that it has begun, so it leaves only when these have ended
// (H9). Until then it joins every round, as a rank does that waits (P2, D2).
func (c *comm) settle(ctx context.Context) error {
	p := c.proc
	p.partAll()
	p.leaks.End() // from now on only failures of collective calls count
	p.stage.Store(stageReturned)
	p.addWaiters(1) // it takes part in errors
	defer p.addWaiters(-1)
	for c.t.Look(); ; {
		// The channel is taken before the check, so a change after the check closes it.
		p.mu.Lock()
		changed := p.nextChange()
		p.mu.Unlock()
		switch err := cmp.Or(c.untoldMismatch(), p.wrong()); {
		case err != nil:
			return err
		case p.calls.Load() == 0 || p.dead.Load():
			return nil
		case !p.await(changed, ctx.Done()) && ctx.Err() != nil:
			return &interruptedError{"Run, which waits for what its rank has begun: " + strings.Join(c.blocked(), ", "), context.Cause(ctx)}
		case p.driver != nil && p.driver.Failed() != nil:
			return nil
		}
	}
}

// ofRank returns the form in which Run reports err, which has ended the program of a rank.
func ofRank(err error, rank int) error {
	if p, ok := err.(*future.Panicked); ok {
		return &PanicError{rank, p.Value, p.Stack}
	}
	return err
}

// refuse ends the rank with err, without running its program.
func (c *comm) refuse(err error) {
	if !c.lineage.isSpare() {
		_, _ = c.lineage.world() // the other ranks are told of err there
	}
	c.leave(err)
}

// leave tells the peers that the rank's program has ended. If err is not nil, they get it as a
// corruption (C1) of those communicators that can still have one. If there are none, as under
// ErrorsReturn, the rank counts as dead, so no peer waits for it.
func (c *comm) leave(err error) {
	c.proc.ended(err)
	told := err == nil || stopIn(err) != nil || c.unwindAll(newFailure(withoutStack(err), 0), err)
	c.end(!told)
}

// end notes on all communicators of the rank that its program has ended. failed says that the peers
// must count the rank as dead, as they do if it is forsaken.
func (c *comm) end(failed bool) {
	p := c.proc
	if p.stage.Store(stageEnded); failed || locked(&c.lineage.mu, c.lineage.rescue.Forsaken) {
		p.stage.Store(stageFailed)
	}
	if p.keeps {
		for _, d := range c.family() {
			d.leaveMessages()
		}
	}
	// Parked ranks that wait for an invitation of this rank learn that none will come.
	c.lineage.feed(func(m *replace.Machine) *replace.Fate {
		m.Leave()
		return nil
	})
	p.feed(p.ledger.Leave)         // joins every round from now on
	p.feed(p.ledger.Go)            // the process may end once all that the rank has raised is resolved
	for _, d := range c.family() { // now, so that peers find that this rank has returned
		d.channel.Leave()
	}
}

// finish notes that the job is over. From now on, operations on communicators of this rank end with
// an error. Pending operations end too, because no peer answers any more. over has their errors, by
// the names of communicators; the ranks of a process share them.
func (c *comm) finish(over map[string]error) {
	p := c.proc
	p.stage.Store(stageOver) // before operations end, so what begins because of that is refused
	p.feed(func() { p.ledger.End(p.driver == nil) })
	if p.driver != nil { // peers in other processes may still receive what this rank sent
		p.driver.OnFailure(nil)
		return
	}
	for _, d := range c.family() {
		err := over[d.name]
		if err == nil {
			err = jobOver(useOp, d.name)
			over[d.name] = err
		}
		d.t.Revoke(err)
		if d.ulfm != nil {
			d.ulfm.Finish(err)
		}
	}
}

// A rankGroup counts the goroutines that run the ranks of one Run. Ranks can be added as long as at
// least one goroutine works.
type rankGroup struct {
	done chan struct{} // closed when working becomes 0

	mu      sync.Mutex   // protects the following fields
	working int          // number of ranks that have not ended
	later   map[int]bool // the ranks that admit has added
}

// newRankGroup returns a group of n ranks. The caller calls work once for each of them.
func newRankGroup(n int) *rankGroup {
	w := &rankGroup{done: make(chan struct{}), working: n, later: make(map[int]bool)}
	if n == 0 {
		close(w.done)
	}
	return w
}

// admit adds a rank, for which the caller then calls work. It returns false, and adds nothing, if
// the rank was added before, or if all ranks have ended.
func (w *rankGroup) admit(rank int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.working == 0 || w.later[rank] {
		return false
	}
	w.later[rank] = true
	w.working++
	return true
}

// work calls run, which runs one rank, and notes its end.
func (w *rankGroup) work(run func()) {
	defer func() { // runtime.Goexit gets here too
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.working--; w.working == 0 {
			close(w.done)
		}
	}()
	run()
}
