package mpicx

import (
	"cmp"
	"time"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/local"
)

// job is what this process has of a job.
type job struct {
	sides []transport.Comm // of the world, of the ranks that live here
	end   func() error     // waits for all processes
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
	j := &job{end: func() error { return nil }}
	for _, side := range start(cmp.Or(o.chosen, o.environment, ranks)) {
		j.sides = append(j.sides, side)
	}
	return j
}
