package mpicx

import (
	"cmp"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
)

// job is what this process has of a job.
type job struct {
	sides []transport.Comm // of all ranks, spares among them, those of the ranks that live here
	// workers are the ranks of the world, if there are spares besides.
	workers []int
	end     func() error // waits for all processes
	// How long a rank that was told of an error lets the one that failed go first: when
	// one has exited, the launcher kills the others, who may not have said why.
	courtesy time.Duration
}

// goroutines returns a job all of whose ranks are goroutines of this process.
func goroutines(o *options, ranks int) *job {
	start := local.New
	if o.backend == backendULFM {
		start = local.NewMortal
	}
	ranks = cmp.Or(o.chosen, o.environment, ranks)
	sides := start(ranks + o.parked())
	j := &job{workers: o.workers(ranks), end: func() error { sides[0].Stop(); return nil }}
	for _, side := range sides {
		j.sides = append(j.sides, side)
	}
	return j
}

// parked is how many ranks are parked. No death is survived with the black channel, so there
// they would never be needed.
func (o *options) parked() int {
	if o.backend == backendULFM {
		return o.spares
	}
	return 0
}

// workers returns the ranks of the world, nil if there are no others.
func (o *options) workers(n int) (workers []int) {
	if o.parked() > 0 {
		workers = firstRanks(n)
	}
	return workers
}

func firstRanks(n int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i
	}
	return ranks
}
