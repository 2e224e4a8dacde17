package mpicx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// job is this process's part in the job of one Run or Instance.
// Its fields do not change once its ranks run.
type job struct {
	sides []transport.Comm // of the communicator of all ranks, with spares: the sides of this process's ranks
	// workers are the ranks of the world in the pool; nil: there is no pool, because there are
	// neither spares nor fresh ranks.
	workers []int
	// later are the sides of the goroutine ranks that may be started later.
	later []transport.Comm
	// start starts a fresh rank, given its rank in the pool, unless it has been started before;
	// nil: there are no fresh ranks.
	start func(rank int)
	// end waits for all processes, and ends this process's part. It is called once, after the
	// program has ended at each rank: a peer may need this process to pass on its error until then.
	end func() error
	// foreign says that this process has no rank. There are two reasons. With the black channel
	// it would be a spare. Or it was started later, for the fresh ranks of a Run, and this job
	// is that of an Instance without WithRespawn.
	foreign bool
	// unfit is why this process's ranks can't run the program; nil: they can. Each such rank
	// ends with this error, so its peers do not wait for it.
	unfit error
	// courtesy is how long Run waits before it returns an error that comes from another rank.
	// The process of the rank that failed should exit first: after the first exit the launcher
	// kills the other processes, and that one must have reported its error by then.
	courtesy time.Duration
}

// courtesy is the courtesy of a process that a launcher has started.
const courtesy = 100 * time.Millisecond

// goroutines returns a job whose ranks are all goroutines of this process. ranks is their number if
// neither WithRanks nor MPICX_RANKS gives it.
func goroutines(o *options, ranks int) *job {
	o.sayIdle()
	start := local.New
	if o.set.Backend == hook.ULFM {
		start = local.NewMortal
	}
	ranks = cmp.Or(o.chosen, o.environment, ranks)
	sides := start(ranks + o.parked() + o.fresh())
	j := &job{sides: make([]transport.Comm, len(sides)), workers: o.workers(ranks), end: func() error { return nil }}
	for i, side := range sides {
		j.sides[i] = side
	}
	// The sides of fresh ranks are made now, too: messages to such a rank wait until it is started.
	if o.fresh() > 0 {
		j.sides, j.later = j.sides[:ranks], j.sides[ranks:]
		j.start = func(int) {} // an Instance starts none; Run sets its own function
	}
	return j
}

// fresh returns the number of fresh ranks that the job may start. It is 0 without WithRespawn, and
// with the black channel.
func (o *options) fresh() int {
	if o.set.Respawn && o.set.Backend == hook.ULFM {
		return o.set.MostFresh
	}
	return 0
}

// parked returns the number of spares. It is 0 with the black channel, which survives no death.
func (o *options) parked() int {
	if o.set.Backend == hook.ULFM {
		return o.set.Spares
	}
	return 0
}

// sayIdle warns of an option that has no effect with the black channel. It is called once in a job.
func (o *options) sayIdle() {
	switch {
	case o.set.Backend == hook.ULFM:
	case o.set.Spares > 0:
		fmt.Fprintf(o.set.Diagnoses, "mpicx: WithSpares(%d): spares need -tags ulfm, so this job has none\n", o.set.Spares)
	case o.set.Respawn:
		fmt.Fprintln(o.set.Diagnoses, "mpicx: WithRespawn: fresh ranks need -tags ulfm, so this job has none")
	}
}

// workers returns the ranks of the world, or nil if there are neither spares nor fresh ranks.
func (o *options) workers(n int) (workers []int) {
	if o.parked() > 0 || o.fresh() > 0 {
		workers = upTo(n)
	}
	return workers
}

// processes is this process's part in the launcher's job, which all Runs and Instances share. It
// begins with the first of them, ends with the last, and can begin again only if mayRestart says
// so.
//
// The mutex protects the other fields. It is held while the processes connect and while they end. A
// goroutine that also locks the instance, in Initialize, locks the instance first.
var processes struct {
	sync.Mutex
	*node.Job              // nil: no Run or Instance uses it
	users      int         // number of Runs and Instances that use it now
	begun      uint64      // number of uses so far; they begin in the same order at all processes
	over       bool        // it has ended, or could not begin, and can't begin again
	mayRestart func() bool // says, at its end, whether it may begin once more
}

// startJob calls beginJob, and opens a timeline if the options ask for one. A process that can't
// write its timeline takes part in the job nevertheless, so that it can tell the others.
func startJob(ctx context.Context, o *options, ranks int) (*job, error) {
	unfit := o.record() // before the job begins, so the timeline has the first event
	if unfit != nil && machine.Processes() == 0 {
		return nil, unfit
	}
	j, err := beginJob(ctx, o, ranks)
	// The timeline is closed after the end of the job, or now if there is none.
	switch {
	case err != nil && o.recorded != nil:
		o.recorded.Close()
		return nil, err
	case err != nil:
		return nil, errors.Join(unfit, err)
	case o.recorded == nil:
		j.unfit = unfit
		return j, nil
	}
	end := j.end
	j.end = func() error {
		defer o.recorded.Close()
		return end()
	}
	return j, nil
}

// record opens this process's timeline, if the options ask for one.
func (o *options) record() (err error) {
	if o.timeline == "" {
		return nil
	}
	job := ""
	if place, _ := machine.Started(); place != nil {
		job = place.Job()
	} else if launcher.Processes() > 0 {
		job = cmp.Or(launcher.Job(), "launched")
	}
	o.recorded, o.run, err = observe.OpenTimeline(o.timeline, job, func(err error) {
		fmt.Fprintln(o.set.Diagnoses, "mpicx: the timeline ends here:", err)
	})
	if err != nil {
		return mpiErrorf("Run", ClassOther, "timeline in %q: %v", o.timeline, err)
	}
	return nil
}

// observer returns the Observer of a rank, or nil if the options ask for none.
func (o *options) observer(rank int) *observe.Observer {
	if o.log == nil && !o.trace && o.recorded == nil {
		return nil
	}
	return &observe.Observer{Rank: rank, Log: o.log, Trace: o.trace, Timeline: o.recorded, Run: o.run}
}

// beginJob takes part in the job for which a launcher has started this process, or starts goroutine
// ranks. ranks is their number if neither WithRanks nor MPICX_RANKS gives it.
func beginJob(ctx context.Context, o *options, ranks int) (*job, error) {
	place, err := machine.Started()
	switch {
	case err != nil:
		return nil, mpiErrorf("Run", ClassOther, "%v", err)
	case place != nil:
		j, err := joinJob(o, func(with node.Options) (*node.Job, error) { return machine.Begin(ctx, place, with.Mortal) }, never, 0)
		if err == nil {
			j.end = leaveEnding
		}
		return j, err
	case launcher.Processes() > 0:
		// When a process has exited, the launcher kills the others; see job.courtesy.
		return joinJob(o, func(with node.Options) (*node.Job, error) { return startLaunched(ctx, with) }, canBeginAgain, courtesy)
	}
	if err := refuseToBeAlone(o); err != nil {
		return nil, err
	}
	return goroutines(o, ranks), nil
}

// joinJob makes this process's part in the next job. The first call also calls begin, which
// connects the processes.
//
// The first n processes are the ranks of the world, the next ones its spares, and the processes
// that are started later its fresh ranks. The others have no rank. Each job has a communicator of
// its own, named by the job's number, so it receives no message of the job before. All processes
// compute its members from the same options, without messages.
func joinJob(o *options, begin func(node.Options) (*node.Job, error), mayRestart func() bool, courtesy time.Duration) (*job, error) {
	l := &processes
	l.Lock()
	defer l.Unlock()
	if l.over {
		return nil, mpiErrorf("Run", ClassOther, "the job has ended in this process, and can't begin again: have an Instance from before the first Run until after the last")
	}
	if l.Job == nil {
		var err error
		if l.Job, err = begin(node.Options{Mortal: o.set.Backend == hook.ULFM, Detector: cmp.Or(o.detector, defaultRing)}); err != nil {
			l.over = true
			return nil, mpiError("Run", err)
		}
	}
	l.mayRestart = mayRestart
	l.users++
	l.begun++
	world := l.World()
	began := world.Size() - l.Later() // the number of processes that were started at the beginning
	n := cmp.Or(o.chosen, began-o.set.Spares)
	o.set.MostFresh = l.Later()
	j := &job{workers: o.workers(max(n, 0)), end: leaveProcesses, courtesy: courtesy}
	// The options are the same at all processes, so all find the same mistake, and none waits.
	var err error
	switch all := n + o.parked(); {
	case n > began:
		err = mpiErrorf("Run", ClassCount, "%d ranks, expected %d or fewer: the number of the job's processes", n, began)
	case n < 1 || n+o.set.Spares > began:
		err = mpiErrorf("Run", ClassCount, "%d spares and %d ranks, expected at most %d in all, the number of the job's processes", o.set.Spares, max(n, 1), began)
	case o.set.Respawn && o.set.Backend == hook.ULFM && l.Later() == 0:
		err = mpiErrorf("Run", ClassOther, "WithRespawn, and the launcher starts no processes later: expected mpicxrun -respawn, or WithSpares")
	case world.Rank() >= began && o.fresh() == 0, o.parked() < o.set.Spares && world.Rank() >= n && world.Rank() < n+o.set.Spares:
		j.foreign = true // see job.foreign
	case world.Rank() < all, world.Rank() >= began:
		// nil members are all processes. There is a list only if some processes have no rank.
		var members []int
		if all+o.fresh() < world.Size() {
			members = upTo(all)
		}
		for p := began; p < began+o.fresh() && members != nil; p++ {
			members = append(members, p)
		}
		if o.fresh() > 0 {
			j.start = func(rank int) { l.Respawn(began + rank - n) }
		}
		var side transport.Comm
		side, err = world.Sub(transport.Name{Seq: l.begun}, members)
		j.sides, err = []transport.Comm{side}, mpiError("Run", err)
	}
	if err != nil { // the use has been counted
		return nil, errors.Join(err, endProcesses())
	}
	if world.Rank() == 0 {
		o.sayIdle()
	}
	return j, nil
}

// leaveProcesses ends one use of processes; see endProcesses.
func leaveProcesses() error {
	processes.Lock()
	defer processes.Unlock()
	return endProcesses()
}

// leaveEnding is leaveProcesses in a job of mpicxrun. If that has the job end by a signal, this
// process lets it come before it says that others have died of it.
func leaveEnding() error {
	err := leaveProcesses()
	if machine.Ending(time.Second) {
		time.Sleep(courtesy)
	}
	return err
}

// endProcesses ends one use of processes. If it was the last, it ends this process's part in the
// job of processes. The caller holds the lock. So a use that begins meanwhile waits, and finds out
// whether there can be another job.
func endProcesses() error {
	l := &processes
	if l.users--; l.users > 0 {
		return nil
	}
	err := l.End()
	if l.over = err != nil || !l.mayRestart(); !l.over {
		l.Job = nil
	}
	return mpiError("Run", err)
}

func never() bool { return false }
