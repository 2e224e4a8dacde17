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
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// job is this process's part in a job.
type job struct {
	sides []transport.Comm // of the communicator of all ranks, with spares: the sides of this process's ranks
	// workers are the ranks of the world, if there are also spares or fresh ranks.
	workers []int
	// later are the sides of the goroutine ranks that may be started later. start has a fresh
	// rank started, if it was not; nil: there are none.
	later []transport.Comm
	start func(rank int)
	stop  func()       // compares the calls of goroutine ranks, whose programs have ended, a last time
	end   func() error // waits for all processes
	// foreign says that this process has no rank: with the black channel it would be a spare; or it
	// was started later, in the job of an Instance without WithRespawn, in which a Run has fresh ranks.
	foreign bool
	// unfit is why this process's ranks can't run the program; nil: they can. Their peers, which
	// may be waiting for them, are told by an error of the rank.
	unfit error
	// courtesy is how long a rank that was told of an error waits before it exits, so that the
	// rank that failed exits first. When a process has exited, the launcher kills the others,
	// which may not have reported their errors.
	courtesy time.Duration
}

// goroutines returns a job whose ranks are all goroutines of this process.
func goroutines(o *options, ranks int) *job {
	o.sayIdle()
	start := local.New
	if o.set.Backend == hook.ULFM {
		start = local.NewMortal
	}
	ranks = cmp.Or(o.chosen, o.environment, ranks)
	sides := start(ranks + o.parked() + o.fresh())
	j := &job{workers: o.workers(ranks), stop: sides[0].Stop, end: func() error { sides[0].Stop(); return nil }}
	for _, side := range sides {
		j.sides = append(j.sides, side)
	}
	if o.fresh() > 0 {
		j.sides, j.later = j.sides[:ranks], j.sides[ranks:]
		j.start = func(int) {} // an Instance has no function for them; Run has
	}
	return j
}

// fresh returns the greatest number of fresh ranks of a job of goroutine ranks.
func (o *options) fresh() int {
	if o.set.Respawn && o.set.Backend == hook.ULFM {
		return o.set.MostFresh
	}
	return 0
}

// parked returns the number of spares. With the black channel it is 0, because no death is survived
// there.
func (o *options) parked() int {
	if o.set.Backend == hook.ULFM {
		return o.set.Spares
	}
	return 0
}

// sayIdle says which option does nothing with the black channel. It is called once in a job.
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

// processes is this process's part in a job of processes, which can begin once. Its lock protects its
// fields. Initialize locks the instance before it.
var processes struct {
	sync.Mutex
	*node.Job
	users int    // number of Runs, and the Instance, that use it now
	begun uint64 // number of users that have begun, in the same order at all processes
	over  bool
	again func() bool // whether it may begin once more after its end
}

// startJob is beginJob, with a timeline if the options ask for one. A process that can't write its
// timeline takes part in the job nevertheless, to tell the others.
func startJob(ctx context.Context, o *options, ranks int) (*job, error) {
	unfit := o.record()
	if unfit != nil && machine.Processes() == 0 {
		return nil, unfit
	}
	j, err := beginJob(ctx, o, ranks)
	switch {
	case err != nil && o.recorder != nil:
		o.recorder.Close()
		return nil, err
	case err != nil:
		return nil, errors.Join(unfit, err)
	case o.recorder == nil:
		j.unfit = unfit
		return j, nil
	}
	end := j.end
	j.end = func() error {
		defer o.recorder.Close()
		return end()
	}
	return j, nil
}

// beginJob takes part in the job for which a launcher has started this process, or starts goroutine
// ranks. ranks is their number if neither WithRanks nor MPICX_RANKS gives it.
func beginJob(ctx context.Context, o *options, ranks int) (*job, error) {
	place, err := machine.Started()
	switch {
	case err != nil:
		return nil, mpiErrorf("Run", ClassOther, "%v", err)
	case place != nil:
		return joinJob(o, func(with node.Options) (*node.Job, error) { return machine.Begin(ctx, place, with.Mortal) }, never, 0)
	case launcher.Processes() > 0:
		// When a process has exited, the launcher kills the others; see job.courtesy.
		return joinJob(o, func(with node.Options) (*node.Job, error) { return startLaunched(ctx, with) }, canBeginAgain, 100*time.Millisecond)
	}
	if err := refuseToBeAlone(o); err != nil {
		return nil, err
	}
	return goroutines(o, ranks), nil
}

// joinJob begins this process's part, if it has not begun.
func joinJob(o *options, begin func(node.Options) (*node.Job, error), again func() bool, courtesy time.Duration) (*job, error) {
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
	l.again = again
	l.users++
	l.begun++
	world := l.World()
	began := world.Size() - l.Later() // processes that were started at the beginning
	n := cmp.Or(o.chosen, began-o.set.Spares)
	o.set.MostFresh = l.Later()
	j := &job{workers: o.workers(max(n, 0)), stop: func() {}, end: leaveProcesses, courtesy: courtesy}
	var err error
	switch all := n + o.parked(); {
	case n > began:
		err = mpiErrorf("Run", ClassCount, "%d ranks, expected %d or fewer: the number of the job's processes", n, began)
	case n < 1 || n+o.set.Spares > began:
		err = mpiErrorf("Run", ClassCount, "%d spares and %d ranks, expected at most %d in all, the number of the job's processes", o.set.Spares, max(n, 1), began)
	case o.set.Respawn && o.set.Backend == hook.ULFM && l.Later() == 0:
		err = mpiErrorf("Run", ClassOther, "WithRespawn, and the launcher starts no processes later: expected mpicxrun -respawn, or WithSpares")
	case world.Rank() >= began && o.fresh() == 0, o.parked() < o.set.Spares && world.Rank() >= n && world.Rank() < n+o.set.Spares:
		j.foreign = true
	case world.Rank() < all, world.Rank() >= began:
		var members []int // all
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
	if err != nil {
		return nil, errors.Join(err, endProcesses())
	}
	if world.Rank() == 0 {
		o.sayIdle()
	}
	return j, nil
}

// leaveProcesses ends this process's part unless it has other users.
func leaveProcesses() error {
	processes.Lock()
	defer processes.Unlock()
	return endProcesses()
}

func endProcesses() error {
	l := &processes
	if l.users--; l.users > 0 {
		return nil
	}
	err := l.End()
	if l.over = err != nil || !l.again(); !l.over {
		l.Job = nil
	}
	return mpiError("Run", err)
}

func never() bool { return false }
