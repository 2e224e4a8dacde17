package mpicx

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
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
	if o.set.Backend == backendULFM {
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
	if o.set.Respawn && o.set.Backend == backendULFM {
		return o.set.MostFresh
	}
	return 0
}

// parked returns the number of spares. With the black channel it is 0, because no death is survived
// there.
func (o *options) parked() int {
	if o.set.Backend == backendULFM {
		return o.set.Spares
	}
	return 0
}

// sayIdle says which option does nothing with the black channel. It is called once in a job.
func (o *options) sayIdle() {
	switch {
	case o.set.Backend == backendULFM:
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
